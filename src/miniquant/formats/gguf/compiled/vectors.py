"""Sixteen numbers as one value, for the functions that numba compiles: what an instruction of the processor works on.

A lane is a block, so the sums of sixteen blocks run side by side, and each adds in its own order, as ggml does. No
operation here is fused with another one or put in another order: what is computed equals numpy's float32, bit for bit.
LLVM uses the instructions that the processor has; where that is narrower, two or four instructions.
"""

# mypy: disable-error-code="import-untyped,no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.datamodel import models
from numba.extending import intrinsic as _intrinsic
from numba.extending import overload, register_model

N = 16  # lanes
intrinsic: Any = _intrinsic
_ELEMENTS = {"f32": ir.FloatType(), "i32": ir.IntType(32), "i1": ir.IntType(1)}


def inner(function: Any) -> Any:
    """A function that other compiled functions call."""
    return njit(nogil=True, error_model="numpy")(function)


class Lanes(types.Type):
    """A number in each lane: f32, i32, or i1, which is a condition."""

    def __init__(self, element: str) -> None:
        self.element, self.ir = element, ir.VectorType(_ELEMENTS[element], N)
        super().__init__(f"{N} lanes of {element}")


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, kind.ir)


FLOATS, INTS, CONDITIONS = Lanes("f32"), Lanes("i32"), Lanes("i1")


def _every(builder: Any, value: Any, kind: ir.VectorType) -> Any:
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), N), [0] * N))


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
def every(typing: Any, number: Any) -> Any:
    """The same float32 in all lanes."""
    return FLOATS(types.float32), lambda context, builder, signature, args: _every(builder, args[0], FLOATS.ir)


@intrinsic
def where(typing: Any, condition: Any, a: Any, b: Any) -> Any:
    """``a`` in the lanes where the condition holds, else ``b``."""
    return a(condition, a, b), lambda context, builder, signature, args: builder.select(*args)


@intrinsic
def anywhere(typing: Any, condition: Any) -> Any:
    """Whether the condition holds in any lane."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], ir.IntType(N))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(condition), code


@intrinsic
def negative(typing: Any, v: Any) -> Any:
    """With the other sign."""
    return v(v), lambda context, builder, signature, args: builder.fneg(args[0])


def _called(name: str) -> Any:
    def typed(typing: Any, v: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            full = f"llvm.{name}.v{N}f32"
            function = ir.FunctionType(v.ir, [v.ir])
            called = builder.module.globals.get(full) or ir.Function(builder.module, function, full)
            return builder.call(called, args)

        return v(v), code

    return intrinsic(typed)


rint, magnitude, root = _called("rint"), _called("fabs"), _called("sqrt")


def _converted(instruction: str, source: Lanes, target: Lanes) -> Any:
    def typed(typing: Any, v: Any) -> Any:
        return target(source), lambda context, builder, signature, args: getattr(builder, instruction)(
            args[0], target.ir
        )

    return intrinsic(typed)


to_floats, bits_of = _converted("sitofp", INTS, FLOATS), _converted("bitcast", FLOATS, INTS)
to_ints, floats_of = _converted("fptosi", FLOATS, INTS), _converted("bitcast", INTS, FLOATS)


def _operator(name: Any, floats: str, integers: str, conditions: str = "") -> None:
    """Let an operator of Python work on lanes: with others, or with one number for all lanes."""

    def built(builder: Any, kind: Lanes, a: Any, b: Any) -> Any:
        sign = {"f32": floats, "i32": integers, "i1": conditions}[kind.element]
        if sign in ("<", ">", "==", "!="):
            compare = builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered
            return compare(sign, a, b) if kind is FLOATS else builder.icmp_signed(sign, a, b)
        return getattr(builder, sign)(a, b)

    def result(kind: Lanes) -> Lanes:
        return CONDITIONS if floats in ("<", ">", "==", "!=") else kind

    @intrinsic
    def both(typing: Any, a: Any, b: Any) -> Any:
        return result(a)(a, a), lambda context, builder, signature, args: built(builder, a, *args)

    @intrinsic
    def number(typing: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return built(builder, a, args[0], _every(builder, args[1], a.ir))

        return result(a)(a, types.float32 if a is FLOATS else types.int32), code

    @overload(name, strict=False)
    def operate(a: Any, b: Any) -> Any:
        if not isinstance(a, Lanes):
            return None
        return (lambda a, b: both(a, b)) if isinstance(b, Lanes) else (lambda a, b: number(a, b))


_operator(operator.add, "fadd", "add")
_operator(operator.sub, "fsub", "sub")
_operator(operator.mul, "fmul", "mul")
_operator(operator.truediv, "fdiv", "")
_operator(operator.and_, "", "and_", "and_")
_operator(operator.or_, "", "or_", "or_")
_operator(operator.lt, "<", "<")
_operator(operator.gt, ">", ">")
_operator(operator.eq, "==", "==")
_operator(operator.ne, "!=", "!=")
