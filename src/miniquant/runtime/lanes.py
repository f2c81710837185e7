"""The registers that the runtime's kernels are made of: 16 floats or 64 bytes, read at an address and written to one.

Products of integers are fast only in registers. Where a processor multiplies bytes and adds them up by four in one
instruction (VNNI), ``dot`` is that instruction.

An address is the number that ``array.ctypes.data`` gives. Nothing checks it: who calls a kernel keeps the array alive.
"""

# mypy: disable-error-code="import-untyped,untyped-decorator"
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from ..core.registers import (
    F32,
    I32,
    Build,
    Lanes,
    called,
    converter,
    declared,
    every,
    filled,
    intrinsic,
    of_one,
    picked,
)

I8, I16, I64, HALF = ir.IntType(8), ir.IntType(16), ir.IntType(64), ir.HalfType()
U8x8, U8x16, U8x32, U8x64 = (Lanes("i8", n) for n in (8, 16, 32, 64))
I32x16, F32x8, F32x16 = Lanes("i32", 16), Lanes("f32", 8), Lanes("f32", 16)


# ---- memory


def _at(builder: ir.IRBuilder, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, ir.PointerType(kind))


def _loader(kind: Any, element: Any, widen: Build | None = None, doc: str = "") -> Any:
    """An intrinsic that reads one value of LLVM's type ``element`` at an address, as numba's type ``kind``."""

    def load(typing: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            found = builder.load(_at(builder, arguments[0], element), align=1)
            return widen(builder, found) if widen else found

        return kind(types.intp), code

    load.__doc__ = doc
    return intrinsic(load)


def _widened(to: ir.Type) -> Build:
    return lambda builder, value: builder.fpext(value, to)


def _from_bf16(builder: Any, value: Any) -> Any:
    wide = builder.zext(value, I32x16.ir)
    return builder.bitcast(builder.shl(wide, ir.Constant(wide.type, [16] * 16)), F32x16.ir)


def _every_half(kind: Lanes) -> Any:
    """A reader of one float16, as a float32 in all lanes. It becomes wider in all lanes, not in one: that instruction
    of PCs would wait for what its register held before."""

    def widened(builder: Any, value: Any) -> Any:
        halves = builder.bitcast(every(builder, value, ir.VectorType(I16, kind.n)), ir.VectorType(HALF, kind.n))
        return builder.fpext(halves, kind.ir)

    return _loader(kind, I16, widened)


bytes16, bytes32, bytes64 = (_loader(kind, kind.ir) for kind in (U8x16, U8x32, U8x64))
ints16, floats16 = _loader(I32x16, I32x16.ir), _loader(F32x16, F32x16.ir)
halves16 = _loader(F32x16, ir.VectorType(HALF, 16), _widened(F32x16.ir))
bfloats16 = _loader(F32x16, ir.VectorType(I16, 16), _from_bf16)
float_at = _loader(types.float32, F32)
half_at = _loader(types.float32, HALF, _widened(F32), "A float16 as a float32.")
bfloat_at = _loader(types.float32, I16, lambda b, v: b.bitcast(b.shl(b.zext(v, I32), I32(16)), F32))
every_half8, every_half16 = _every_half(F32x8), _every_half(F32x16)
word_at = _loader(types.uint32, I32, doc="Four bytes, little-endian.")
int32_at = _loader(types.int32, I32)
int_at = _loader(types.int64, I64)


@intrinsic
def bits32(typing: Any, address: Any) -> Any:
    """The bits of four bytes, the lowest first, as 32 bytes of 0 and 1."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.load(_at(builder, arguments[0], I32), align=1)
        return builder.zext(builder.bitcast(bits, ir.VectorType(ir.IntType(1), 32)), U8x32.ir)

    return U8x32(types.intp), code


@intrinsic
def fetch(typing: Any, address: Any) -> Any:
    """Let the processor bring the cache line at an address nearer; an address that is none does no harm."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.PointerType(I8)
        function = declared(builder, "llvm.prefetch.p0", ir.VoidType(), [byte, I32, I32, I32])
        read, nearest, data = I32(0), I32(3), I32(1)
        builder.call(function, [builder.inttoptr(arguments[0], byte), read, nearest, data])
        return context.get_dummy_value()

    return types.void(types.intp), code


@intrinsic
def store(typing: Any, address: Any, value: Any) -> Any:
    """Write a register, or one number, to an address."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[1], _at(builder, arguments[0], arguments[1].type), align=1)
        return context.get_dummy_value()

    return types.void(types.intp, value), code


# ---- lanes put together


@intrinsic
def eight(typing: Any, low: Any, high: Any) -> Any:
    """Two words of four bytes as eight bytes."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = ir.Constant(ir.VectorType(I32, 2), ir.Undefined)
        for i, word in enumerate(arguments):
            found = builder.insert_element(found, word, I32(i))
        return builder.bitcast(found, U8x8.ir)

    return U8x8(types.uint32, types.uint32), code


@intrinsic
def join(typing: Any, a: Any, b: Any) -> Any:
    """Two registers end to end."""
    found = Lanes(a.element, 2 * a.n)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return picked(builder, args[0], args[1], list(range(found.n)))

    return found(a, b), code


def _repeated(picks: list[int], doc: str) -> Any:
    return of_one(lambda v: F32x16, lambda builder, value, kind: picked(builder, value, value, picks), doc)


every_float16 = filled(F32x16, types.float32)
every_int16, every_byte64 = filled(I32x16, types.int32), filled(U8x64, types.uint8)
spread2 = [_repeated([2 * k + i // 8 for i in range(16)], "Lanes 2k and 2k + 1, eight times each.") for k in range(4)]
spread4 = [_repeated([4 * k + i // 4 for i in range(16)], "Lanes 4k to 4k + 3, four times each.") for k in range(4)]
(pair0, pair1, pair2, pair3), (four0, four1, four2, four3) = spread2, spread4


# ---- from one sort of number to another


def _rounder(name: str, doc: str) -> Any:
    def rounded(builder: Any, value: Any, kind: Any) -> Any:
        return builder.trunc(builder.fptosi(called(builder, name, value), I32x16.ir), kind.ir)

    return of_one(lambda v: U8x16, rounded, doc)


signed = converter("sitofp", "f32", "Integers with a sign to floats.")
unsigned = converter("uitofp", "f32", "Bytes without a sign to floats.")
nearest = _rounder("llvm.rint", "Sixteen floats as bytes, the nearest; of two as near, the even one.")
outward = _rounder("llvm.round", "Sixteen floats as bytes, the nearest; of two as near, the one farther from zero.")


@intrinsic
def as_half(typing: Any, x: Any) -> Any:
    """A float32, rounded to a float16."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fpext(builder.fptrunc(args[0], HALF), F32)

    return types.float32(types.float32), code


# ---- sums and products


def _halved(combine: Build, doc: str, first: Build = lambda builder, value: value) -> Any:
    """A function that makes one float of a register: one half is combined with the other, until one lane is left."""

    def one(builder: Any, value: Any, kind: Any) -> Any:
        value, n = first(builder, value), value.type.count
        while n > 1:
            n //= 2
            low, high = (picked(builder, value, value, list(range(at, at + n))) for at in (0, n))
            value = combine(builder, low, high)
        return builder.extract_element(value, I32(0))

    return of_one(lambda v: types.float32, one, doc)


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


largest = _halved(_larger, "The largest magnitude.", lambda builder, value: called(builder, "llvm.fabs", value))
sum_of = _halved(lambda builder, a, b: builder.fadd(a, b), "The sum of the floats, by halves.")


@intrinsic
def plus_product(typing: Any, total: Any, a: Any, b: Any) -> Any:
    """total + a · b, lane by lane."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return called(builder, "llvm.fmuladd", args[1], args[2], args[0])

    return total(total, a, b), code


@intrinsic
def dot(typing: Any, total: Any, u: Any, s: Any) -> Any:
    """To each of 16 integers, four products of neighbours: 64 bytes without a sign times 64 with one."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if "+avx512vnni" in context.codegen()._tm_features:
            kind = I32x16.ir
            function = declared(builder, "llvm.x86.avx512.vpdpbusd.512", kind, [kind, kind, kind])
            return builder.call(function, [args[0], builder.bitcast(args[1], kind), builder.bitcast(args[2], kind)])
        return builder.add(args[0], _products(builder, args[1], args[2]))

    return total(total, u, s), code


def _products(builder: Any, u: Any, s: Any) -> Any:
    """The same in plain instructions; neighbours are added twice, which PCs have an instruction for as well."""
    short, wide = (ir.VectorType(ir.IntType(bits), n) for bits, n in ((16, 64), (32, 32)))
    u, s = builder.zext(u, short), builder.sext(s, short)
    even, odd = list(range(0, 64, 2)), list(range(1, 64, 2))
    products = [
        builder.mul(*(builder.sext(picked(builder, v, v, lanes), wide) for v in (u, s))) for lanes in (even, odd)
    ]
    pairs = builder.add(*products)
    return builder.add(*(picked(builder, pairs, pairs, lanes[:16]) for lanes in (even, odd)))


# ---- what threads agree on: numbers of 64 bits that several of them read and write


@intrinsic
def add_shared(typing: Any, address: Any, n: Any) -> Any:
    """Add to a number that others add to as well; what it was before."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _at(builder, args[0], I64), args[1], "seq_cst")

    return types.int64(types.intp, types.int64), code


@intrinsic
def read_shared(typing: Any, address: Any) -> Any:
    """What another thread may have written."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_at(builder, args[0], I64), "seq_cst", 8, typ=I64)

    return types.int64(types.intp), code


@intrinsic
def write_shared(typing: Any, address: Any, value: Any) -> Any:
    """What other threads will read, and all that was written before it."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], _at(builder, args[0], I64), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(types.intp, types.int64), code


@intrinsic
def pause(typing: Any) -> Any:
    """Tell the processor that this thread waits: it leaves what two threads of a core share to the other one."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        machine = builder.module.triple.partition("-")[0]
        if machine in ("x86_64", "i686"):
            builder.call(declared(builder, "llvm.x86.sse2.pause", ir.VoidType(), []), [])
        elif machine in ("aarch64", "arm64"):
            builder.call(declared(builder, "llvm.aarch64.hint", ir.VoidType(), [I32]), [I32(1)])
        return context.get_dummy_value()

    return types.void(), code


@intrinsic
def call(typing: Any, address: Any) -> Any:
    """Call a function of C that takes nothing."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [])
        builder.call(builder.inttoptr(args[0], ir.PointerType(function)), [])
        return context.get_dummy_value()

    return types.void(types.intp), code
