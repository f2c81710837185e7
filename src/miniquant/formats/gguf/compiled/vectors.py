"""The registers that codecs are made of: sixteen numbers, read from a row of an array and written to one.

A lane is a block, so the sums of sixteen blocks run side by side, and each adds in its own order, as ggml does.
"""

# mypy: disable-error-code="import-untyped,no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types

from ....core.registers import Lanes, converter, declared, filled, intrinsic, lane_by_lane, of_one

N = 16  # lanes
FLOATS, INTS, SHORTS, BYTES = Lanes("f32", N), Lanes("i32", N), Lanes("i16", N), Lanes("i8", N)
CONDITION, _BITS = Lanes("i1", N), ir.IntType(N)
_OF = {types.float32: FLOATS, types.int32: INTS, types.uint16: SHORTS, types.uint8: BYTES}


def inner(function: Any) -> Any:
    """A function that other compiled functions call."""
    return njit(nogil=True, error_model="numpy")(function)


def _access(build: Any, step: int) -> Any:
    """The code that ``build`` makes of a pointer to item ``step`` × the second argument of an array, and the others."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = signature.args[0]
        data = context.make_array(array)(context, builder, args[0]).data
        at = builder.gep(data, [builder.mul(args[1], ir.Constant(args[1].type, step))])
        found = build(builder, builder.bitcast(at, ir.PointerType(_OF[array.dtype].ir)), *args[2:])
        return context.get_dummy_value() if found is None else found

    return code


def _reader(step: int, doc: str) -> Any:
    def reader(typing: Any, array: Any, at: Any) -> Any:
        return _OF[array.dtype](array, types.intp), _access(lambda builder, place: builder.load(place, align=1), step)

    reader.__doc__ = doc
    return intrinsic(reader)


def _put(builder: Any, place: Any, value: Any) -> None:
    builder.store(value, place, align=1)


def _put_past(builder: Any, place: Any, value: Any) -> None:
    hint = builder.module.add_metadata([ir.IntType(32)(1)])
    builder.store(value, place, align=16).set_metadata("nontemporal", hint)


def _writer(step: int, put: Any, doc: str) -> Any:
    def writer(typing: Any, array: Any, at: Any, value: Any) -> Any:
        return types.void(array, types.intp, value), _access(put, step)

    writer.__doc__ = doc
    return intrinsic(writer)


load = _reader(N, "Row ``row`` of an array (rows, 16) of float32 or int32, contiguous.")
store = _writer(N, _put, "Write row ``row`` of such an array.")
read = _reader(1, "Sixteen numbers of a contiguous array of float32, int32, uint16 or uint8, from item ``at`` on.")
write = _writer(1, _put, "Write sixteen numbers into such an array.")
write_past = _writer(1, _put_past, "The same without a place in the caches; the address is a multiple of 16.")


@intrinsic
def where(typing: Any, condition: Any, a: Any, b: Any) -> Any:
    """``a`` in the lanes where the condition holds, else ``b``."""
    return a(condition, a, b), lambda context, builder, signature, args: builder.select(*args)


@intrinsic
def condition(typing: Any, bits: Any) -> Any:
    """The lowest sixteen bits of an integer as a condition: the lowest one is lane 0."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(builder.trunc(args[0], _BITS), CONDITION.ir)

    return CONDITION(types.int64), code


@intrinsic
def in_lanes(typing: Any, words: Any) -> Any:
    """Two numbers of eight bytes, or four of four, as sixteen bytes.   words: a tuple of uint64 or uint32."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = context.get_value_type(words.dtype)
        found = ir.Constant(ir.VectorType(one, words.count), ir.Undefined)
        for i in range(words.count):
            found = builder.insert_element(found, builder.extract_value(args[0], i), ir.IntType(32)(i))
        return builder.bitcast(found, BYTES.ir)

    return BYTES(words), code


@intrinsic
def looked_up(typing: Any, table: Any, at: Any) -> Any:
    """The lanes of a register that others name.   table: floats, at: integers from 0 to 15."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if "+avx512f" in context.codegen()._tm_features:
            kinds = [FLOATS.ir, INTS.ir]
            return builder.call(declared(builder, "llvm.x86.avx512.permvar.sf.512", FLOATS.ir, kinds), args)
        found = ir.Constant(FLOATS.ir, ir.Undefined)
        for lane in map(ir.IntType(32), range(N)):
            one = builder.extract_element(args[0], builder.extract_element(args[1], lane))
            found = builder.insert_element(found, one, lane)
        return found

    return table(table, at), code


def _converts(context: Any) -> bool:
    return "+f16c" in context.codegen()._tm_features


@intrinsic
def has_halves(typing: Any) -> Any:
    """Whether the processor itself rounds to float16."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(context.get_value_type(types.boolean), int(_converts(context)))

    return types.boolean(), code


@intrinsic
def halves(typing: Any, v: Any) -> Any:
    """The bits of floats as float16, rounded half to even, if ``has_halves()``; a NaN becomes quiet."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not _converts(context):  # nobody asks
            return ir.Constant(SHORTS.ir, None)
        return builder.bitcast(builder.fptrunc(args[0], ir.VectorType(ir.HalfType(), N)), SHORTS.ir)

    return SHORTS(v), code


def _any(builder: Any, value: Any, kind: Any) -> Any:
    return builder.icmp_unsigned("!=", builder.bitcast(value, _BITS), _BITS(0))


every = filled(FLOATS, types.float32, "The same float32 in all lanes.")
every_int = filled(INTS, types.int32, "The same int32 in all lanes.")
bits_where = of_one(
    lambda v: types.uint16, lambda builder, value, kind: builder.bitcast(value, _BITS), "A condition as sixteen bits."
)
anywhere = of_one(lambda v: types.boolean, _any, "Whether the condition holds in any lane.")
negative = of_one(lambda v: v, lambda builder, value, kind: builder.fneg(value), "With the other sign.")
rint = lane_by_lane("llvm.rint", "The nearest whole numbers; of two as near, the even one.")
magnitude = lane_by_lane("llvm.fabs", "Without the sign.")
root = lane_by_lane("llvm.sqrt", "The square roots.")
to_floats = converter("sitofp", "f32", "Integers as floats.")
to_ints = converter("fptosi", "i32", "Floats as integers, cut off.")
bits_of = converter("bitcast", "i32", "The bits of floats, as integers.")
floats_of = converter("bitcast", "f32", "The floats with these bits.")
unsigned = converter("zext", "i32", "Bytes, or numbers of two bytes, as integers without a sign.")
signed = converter("sext", "i32", "Bytes as integers, with their sign.")
bytes_of = converter("trunc", "i8", "The lowest bytes of integers.")
