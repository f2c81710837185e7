"""Vectors for functions that numba compiles: 16 floats or 64 bytes are one value, and one instruction works on all.

numba has scalars and arrays. Between the two is what a processor computes with, a register of some lanes, and products
of integers are fast only in registers. So here are a few types for them, and the functions that kernels are made of.
They become vectors of LLVM, which every processor has in some width. Where a processor multiplies bytes and adds them
up by four in one instruction (VNNI), ``dot`` is that instruction.

An address is the number that ``array.ctypes.data`` gives. Nothing checks it: who calls a kernel keeps the array alive.
"""

# mypy: disable-error-code="import-untyped,no-untyped-call,untyped-decorator"
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core.datamodel import models
from numba.extending import overload, register_model

intrinsic: Any = extending.intrinsic  # what it returns is called with one argument less than the function below it
_I32, _F32 = ir.IntType(32), ir.FloatType()
_ELEMENTS = {"i8": ir.IntType(8), "i32": _I32, "f32": _F32}


class Lanes(types.Type):
    """``n`` numbers in a register; ``element`` is a key of ``_ELEMENTS``. Bytes have a sign only where they meet."""

    def __init__(self, element: str, n: int) -> None:
        self.element, self.n = element, n
        super().__init__(f"{n} × {element}")

    @property
    def ir(self) -> ir.VectorType:
        """As LLVM has it."""
        return ir.VectorType(_ELEMENTS[self.element], self.n)


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, kind.ir)


Build = Callable[..., Any]


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
    wide = builder.zext(value, ir.VectorType(ir.IntType(32), 16))
    return builder.bitcast(builder.shl(wide, ir.Constant(wide.type, [16] * 16)), F32x16.ir)


U8x8, U8x16, U8x32, U8x64 = (Lanes("i8", n) for n in (8, 16, 32, 64))
I32x16, F32x8, F32x16 = Lanes("i32", 16), Lanes("f32", 8), Lanes("f32", 16)

bytes8, bytes16, bytes32, bytes64 = (_loader(kind, kind.ir) for kind in (U8x8, U8x16, U8x32, U8x64))
ints16 = _loader(I32x16, I32x16.ir)
floats8, floats16 = _loader(F32x8, F32x8.ir), _loader(F32x16, F32x16.ir)
halves16 = _loader(F32x16, ir.VectorType(ir.HalfType(), 16), _widened(F32x16.ir))
bfloats16 = _loader(F32x16, ir.VectorType(ir.IntType(16), 16), _from_bf16)
float_at = _loader(types.float32, ir.FloatType())
half_at = _loader(types.float32, ir.HalfType(), _widened(ir.FloatType()), "A float16 as a float32.")
bfloat_at = _loader(types.float32, ir.IntType(16), lambda b, v: b.bitcast(b.shl(b.zext(v, _I32), _I32(16)), _F32))
byte_at = _loader(types.uint8, ir.IntType(8))
word_at = _loader(types.uint32, ir.IntType(32), doc="Four bytes, little-endian.")
int32_at = _loader(types.int32, ir.IntType(32))
int_at = _loader(types.int64, ir.IntType(64))


@intrinsic
def fetch(typing: Any, address: Any) -> Any:
    """Let the processor bring the cache line at an address nearer; an address that is none does no harm."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.PointerType(ir.IntType(8))
        name, three = "llvm.prefetch.p0", [_I32] * 3
        function = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, *three]), name
        )
        read, nearest, data = _I32(0), _I32(3), _I32(1)
        builder.call(function, [builder.inttoptr(arguments[0], byte), read, nearest, data])
        return context.get_dummy_value()

    return types.void(types.intp), code


@intrinsic
def bits32(typing: Any, address: Any) -> Any:
    """The bits of four bytes, the lowest first, as 32 bytes of 0 and 1."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.load(_at(builder, arguments[0], ir.IntType(32)), align=1)
        return builder.zext(builder.bitcast(bits, ir.VectorType(ir.IntType(1), 32)), U8x32.ir)

    return U8x32(types.intp), code


@intrinsic
def eight(typing: Any, low: Any, high: Any) -> Any:
    """Two words of four bytes as eight bytes."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = ir.Constant(ir.VectorType(ir.IntType(32), 2), ir.Undefined)
        for i, word in enumerate(arguments):
            found = builder.insert_element(found, word, ir.Constant(ir.IntType(32), i))
        return builder.bitcast(found, U8x8.ir)

    return U8x8(types.uint32, types.uint32), code


@intrinsic
def store(typing: Any, address: Any, value: Any) -> Any:
    """Write a register, or one number, to an address."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[1], _at(builder, arguments[0], arguments[1].type), align=1)
        return context.get_dummy_value()

    return types.void(types.intp, value), code


def _every(builder: Any, value: Any, kind: ir.VectorType) -> Any:
    """A register with the same number in all lanes."""
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return _picked(builder, one, one, [0] * kind.count)


def _picked(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
    return builder.shuffle_vector(a, b, mask)


def _filled(kind: Lanes, number: Any) -> Any:
    def fill(typing: Any, value: Any) -> Any:
        return kind(number), lambda context, builder, signature, args: _every(builder, args[0], kind.ir)

    return intrinsic(fill)


every_float8, every_float16 = _filled(F32x8, types.float32), _filled(F32x16, types.float32)
every_int16, every_byte64 = _filled(I32x16, types.int32), _filled(U8x64, types.uint8)


@intrinsic
def join(typing: Any, a: Any, b: Any) -> Any:
    """Two registers end to end."""
    found = Lanes(a.element, 2 * a.n)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _picked(builder, args[0], args[1], list(range(found.n)))

    return found(a, b), code


def _repeated(picks: list[int], doc: str) -> Any:
    def repeat(typing: Any, v: Any) -> Any:
        return F32x16(v), lambda context, builder, signature, args: _picked(builder, args[0], args[0], picks)

    repeat.__doc__ = doc
    return intrinsic(repeat)


spread2 = [_repeated([2 * k + i // 8 for i in range(16)], "Lanes 2k and 2k + 1, eight times each.") for k in range(4)]
spread4 = [_repeated([4 * k + i // 4 for i in range(16)], "Lanes 4k to 4k + 3, four times each.") for k in range(4)]
(pair0, pair1, pair2, pair3), (four0, four1, four2, four3) = spread2, spread4


def _converter(instruction: str, doc: str) -> Any:
    def convert(typing: Any, v: Any) -> Any:
        found = Lanes("f32", v.n)
        return found(v), lambda context, builder, signature, args: getattr(builder, instruction)(args[0], found.ir)

    convert.__doc__ = doc
    return intrinsic(convert)


signed = _converter("sitofp", "Integers with a sign to floats.")
unsigned = _converter("uitofp", "Bytes without a sign to floats.")


@intrinsic
def largest(typing: Any, v: Any) -> Any:
    """The largest magnitude."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found, n = _called(builder, "llvm.fabs", args[0]), v.n
        while n > 1:
            n //= 2
            low, high = (_picked(builder, found, found, list(range(at, at + n))) for at in (0, n))
            found = builder.select(builder.fcmp_ordered(">", low, high), low, high)
        return builder.extract_element(found, ir.Constant(ir.IntType(32), 0))

    return types.float32(v), code


def _called(builder: Any, name: str, *values: Any) -> Any:
    kind = values[0].type
    element = {"half": "f16", "float": "f32"}[str(kind.element)]
    full = f"{name}.v{kind.count}{element}"
    function = ir.FunctionType(kind, [value.type for value in values])
    called = builder.module.globals.get(full) or ir.Function(builder.module, function, full)
    return builder.call(called, values)


def _rounder(name: str, doc: str) -> Any:
    def rounded(typing: Any, v: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            whole = _called(builder, name, args[0])
            return builder.trunc(builder.fptosi(whole, I32x16.ir), U8x16.ir)

        return U8x16(v), code

    rounded.__doc__ = doc
    return intrinsic(rounded)


nearest = _rounder("llvm.rint", "Sixteen floats as bytes, the nearest; of two as near, the even one.")
outward = _rounder("llvm.round", "Sixteen floats as bytes, the nearest; of two as near, the one farther from zero.")


@intrinsic
def as_half(typing: Any, x: Any) -> Any:
    """A float32, rounded to a float16."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fpext(builder.fptrunc(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.float32), code


@intrinsic
def plus_product(typing: Any, total: Any, a: Any, b: Any) -> Any:
    """total + a · b, lane by lane."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _called(builder, "llvm.fmuladd", args[1], args[2], args[0])

    return total(total, a, b), code


@intrinsic
def sum_of(typing: Any, v: Any) -> Any:
    """The sum of sixteen floats, by halves."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found, n = args[0], v.n
        while n > 1:
            n //= 2
            low, high = list(range(n)), list(range(n, 2 * n))
            found = builder.fadd(_picked(builder, found, found, low), _picked(builder, found, found, high))
        return builder.extract_element(found, ir.Constant(ir.IntType(32), 0))

    return types.float32(v), code


@intrinsic
def dot(typing: Any, total: Any, u: Any, s: Any) -> Any:
    """To each of 16 integers, four products of neighbours: 64 bytes without a sign times 64 with one."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        features = context.codegen()._tm_features
        if "+avx512vnni" in features:
            name, kind = "llvm.x86.avx512.vpdpbusd.512", I32x16.ir
            function = ir.FunctionType(kind, [kind, kind, kind])
            called = builder.module.globals.get(name) or ir.Function(builder.module, function, name)
            return builder.call(called, [args[0], builder.bitcast(args[1], kind), builder.bitcast(args[2], kind)])
        return builder.add(args[0], _products(builder, args[1], args[2]))

    return total(total, u, s), code


def _products(builder: Any, u: Any, s: Any) -> Any:
    """The same in plain instructions; neighbours are added twice, which PCs have an instruction for as well."""
    short, wide = (ir.VectorType(ir.IntType(bits), n) for bits, n in ((16, 64), (32, 32)))
    u, s = builder.zext(u, short), builder.sext(s, short)
    even, odd = list(range(0, 64, 2)), list(range(1, 64, 2))
    products = [
        builder.mul(*(builder.sext(_picked(builder, v, v, lanes), wide) for v in (u, s))) for lanes in (even, odd)
    ]
    pairs = builder.add(*products)
    return builder.add(*(_picked(builder, pairs, pairs, lanes[:16]) for lanes in (even, odd)))


def _operator(name: Callable[..., Any], floats: str, integers: str) -> None:
    """Let an operator of Python work on registers: with another one, or with a number for all lanes."""

    @intrinsic
    def both(typing: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, floats if a.element == "f32" else integers)(*args)

        return a(a, b), code

    @intrinsic
    def number(typing: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            given = args[1]
            if a.element != "f32":
                given = builder.trunc(given, _ELEMENTS[a.element])
            return getattr(builder, floats if a.element == "f32" else integers)(args[0], _every(builder, given, a.ir))

        return a(a, types.float32 if a.element == "f32" else types.int64), code

    @overload(name, strict=False)
    def operate(a: Any, b: Any) -> Any:
        if not isinstance(a, Lanes):
            return None
        return (lambda a, b: both(a, b)) if isinstance(b, Lanes) else (lambda a, b: number(a, b))


_operator(operator.add, "fadd", "add")
_operator(operator.sub, "fsub", "sub")
_operator(operator.mul, "fmul", "mul")
_operator(operator.and_, "", "and_")
_operator(operator.or_, "", "or_")
_operator(operator.xor, "", "xor")
_operator(operator.rshift, "", "lshr")
_operator(operator.lshift, "", "shl")


# ---- what threads agree on: numbers of 64 bits that several of them read and write


@intrinsic
def add_shared(typing: Any, address: Any, n: Any) -> Any:
    """Add to a number that others add to as well; what it was before."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _at(builder, args[0], ir.IntType(64)), args[1], "seq_cst")

    return types.int64(types.intp, types.int64), code


@intrinsic
def read_shared(typing: Any, address: Any) -> Any:
    """What another thread may have written."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_at(builder, args[0], ir.IntType(64)), "seq_cst", 8, typ=ir.IntType(64))

    return types.int64(types.intp), code


@intrinsic
def write_shared(typing: Any, address: Any, value: Any) -> Any:
    """What other threads will read, and all that was written before it."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], _at(builder, args[0], ir.IntType(64)), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(types.intp, types.int64), code


@intrinsic
def call(typing: Any, address: Any, number: Any) -> Any:
    """Call a function of C that takes an int."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [_I32])
        builder.call(builder.inttoptr(args[0], ir.PointerType(function)), [args[1]])
        return context.get_dummy_value()

    return types.void(types.intp, types.int32), code
