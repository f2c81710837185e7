"""The registers that codecs are made of: sixteen numbers, read from a row of an array and written to one.

A lane is a block, so the sums of sixteen blocks run side by side, and each adds in its own order, as ggml does.
"""

# mypy: disable-error-code="import-untyped,no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types

from ....core.registers import Lanes, converter, filled, intrinsic, lane_by_lane, of_one

N = 16  # lanes
FLOATS, INTS = Lanes("f32", N), Lanes("i32", N)


def inner(function: Any) -> Any:
    """A function that other compiled functions call."""
    return njit(nogil=True, error_model="numpy")(function)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, row: Any, vector: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    at = builder.gep(data, [builder.mul(row, ir.Constant(row.type, N))])
    return builder.bitcast(at, ir.PointerType(vector))


@intrinsic
def load(typing: Any, array: Any, row: Any) -> Any:
    """Row ``row`` of an array (rows, 16) of float32 or int32, contiguous."""
    found = FLOATS if array.dtype == types.float32 else INTS

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, array, args[0], args[1], found.ir), align=4)

    return found(array, types.intp), code


@intrinsic
def store(typing: Any, array: Any, row: Any, value: Any) -> Any:
    """Write row ``row`` of such an array."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _pointer(context, builder, array, args[0], args[1], value.ir), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), code


@intrinsic
def where(typing: Any, condition: Any, a: Any, b: Any) -> Any:
    """``a`` in the lanes where the condition holds, else ``b``."""
    return a(condition, a, b), lambda context, builder, signature, args: builder.select(*args)


def _any(builder: Any, value: Any, kind: Any) -> Any:
    bits = builder.bitcast(value, ir.IntType(N))
    return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))


every = filled(FLOATS, types.float32, "The same float32 in all lanes.")
anywhere = of_one(lambda v: types.boolean, _any, "Whether the condition holds in any lane.")
negative = of_one(lambda v: v, lambda builder, value, kind: builder.fneg(value), "With the other sign.")
rint = lane_by_lane("llvm.rint", "The nearest whole numbers; of two as near, the even one.")
magnitude = lane_by_lane("llvm.fabs", "Without the sign.")
root = lane_by_lane("llvm.sqrt", "The square roots.")
to_floats = converter("sitofp", "f32", "Integers as floats.")
to_ints = converter("fptosi", "i32", "Floats as integers, cut off.")
bits_of = converter("bitcast", "i32", "The bits of floats, as integers.")
