"""Registers as values in functions that numba compiles: some numbers are one value, and one instruction takes them all.

numba has scalars and arrays. Between the two is what a processor computes with, a register of some lanes. Here it is a
type, with the operators of Python and the means to make further functions. They become vectors of LLVM, which every
processor has in some width; where that is narrower, there are two or four instructions. No operation is fused with
another one or put in another order: what is computed equals numpy's float32, bit for bit.
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
Build = Callable[..., Any]
I32, F32 = ir.IntType(32), ir.FloatType()
_ELEMENTS = {"i1": ir.IntType(1), "i8": ir.IntType(8), "i16": ir.IntType(16), "i32": I32, "f32": F32}
_COMPARISONS = ("<", ">", "==", "!=")


class Lanes(types.Type):
    """``n`` numbers in a register: f32, i32, i16, i8, or i1, which is a condition. Bytes have no sign of their own."""

    def __init__(self, element: str, n: int) -> None:
        self.element, self.n = element, n
        super().__init__(f"{n} lanes of {element}")

    @property
    def ir(self) -> ir.VectorType:
        """As LLVM has it."""
        return ir.VectorType(_ELEMENTS[self.element], self.n)


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, kind.ir)


# ---- parts of a function's code


def picked(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    """A register of these lanes, counted through both."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))


def every(builder: Any, value: Any, kind: ir.VectorType) -> Any:
    """A register with the same number in all lanes."""
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, I32(0))
    return picked(builder, one, one, [0] * kind.count)


def declared(builder: Any, name: str, result: ir.Type, given: list[ir.Type]) -> Any:
    """A function that LLVM knows by this name."""
    return builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(result, given), name)


def called(builder: Any, name: str, *values: Any) -> Any:
    """What LLVM's own function of this name gives for registers of floats, lane by lane."""
    kind = values[0].type
    function = declared(builder, f"{name}.v{kind.count}f32", kind, [value.type for value in values])
    return builder.call(function, values)


# ---- functions of registers


def of_one(result: Callable[[Lanes], Any], build: Build, doc: str = "") -> Any:
    """A function of one register: of type ``result(its type)``, with the code ``build(builder, value, that type)``."""

    def made(typing: Any, v: Any) -> Any:
        found = result(v)
        return found(v), lambda context, builder, signature, args: build(builder, args[0], found)

    made.__doc__ = doc
    return intrinsic(made)


def lane_by_lane(name: str, doc: str) -> Any:
    """LLVM's own function of this name as one of a register of floats."""
    return of_one(lambda v: v, lambda builder, value, kind: called(builder, name, value), doc)


def converter(instruction: str, element: str, doc: str) -> Any:
    """A function that makes numbers of another element from a register, by one of LLVM's instructions."""
    return of_one(
        lambda v: Lanes(element, v.n), lambda builder, value, kind: getattr(builder, instruction)(value, kind.ir), doc
    )


def filled(kind: Lanes, number: Any, doc: str = "The same number in all lanes.") -> Any:
    """A function that makes a register from one number of numba's type ``number``."""

    def made(typing: Any, value: Any) -> Any:
        return kind(number), lambda context, builder, signature, args: every(builder, args[0], kind.ir)

    made.__doc__ = doc
    return intrinsic(made)


def _operator(function: Build, floats: str, integers: str) -> None:
    """Let an operator of Python work on registers: with another one, or with one number for all lanes."""

    def built(builder: Any, kind: Lanes, a: Any, b: Any) -> Any:
        sign = floats if kind.element == "f32" else integers
        if sign not in _COMPARISONS:
            return getattr(builder, sign)(a, b)
        if kind.element != "f32":
            return builder.icmp_signed(sign, a, b)
        return (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, a, b)

    def result(kind: Lanes) -> Lanes:
        return Lanes("i1", kind.n) if floats in _COMPARISONS else kind

    @intrinsic
    def both(typing: Any, a: Any, b: Any) -> Any:
        return result(a)(a, b), lambda context, builder, signature, args: built(builder, a, *args)

    @intrinsic
    def number(typing: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            given = args[1] if a.element == "f32" else builder.trunc(args[1], a.ir.element)
            return built(builder, a, args[0], every(builder, given, a.ir))

        return result(a)(a, types.float32 if a.element == "f32" else types.int64), code

    @overload(function, strict=False)
    def operate(a: Any, b: Any) -> Any:
        if not isinstance(a, Lanes):
            return None
        return (lambda a, b: both(a, b)) if isinstance(b, Lanes) else (lambda a, b: number(a, b))


_operator(operator.add, "fadd", "add")
_operator(operator.sub, "fsub", "sub")
_operator(operator.mul, "fmul", "mul")
_operator(operator.truediv, "fdiv", "")
_operator(operator.and_, "", "and_")
_operator(operator.or_, "", "or_")
_operator(operator.xor, "", "xor")
_operator(operator.rshift, "", "lshr")
_operator(operator.lshift, "", "shl")
for _compare, _sign in ((operator.lt, "<"), (operator.gt, ">"), (operator.eq, "=="), (operator.ne, "!=")):
    _operator(_compare, _sign, _sign)
