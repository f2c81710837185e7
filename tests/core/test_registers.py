"""Registers in compiled functions: every operator and every sort of lanes gives what numpy gives, bit for bit."""

from __future__ import annotations

import operator

import numba
import numpy as np
import pytest
from llvmlite import ir
from numba import types

from miniquant.core import registers
from miniquant.core.registers import Lanes, called, converter, every, filled, intrinsic, lane_by_lane, of_one, picked

DTYPES = {"f32": np.float32, "i32": np.int32, "i8": np.uint8}
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
BITWISE = {"&": operator.and_, "|": operator.or_, "^": operator.xor}
OPERATORS = {
    "f32": ARITHMETIC | {"/": operator.truediv},
    "i32": ARITHMETIC | BITWISE,
    "i8": ARITHMETIC | BITWISE,
}
COMPARISONS = {"<": operator.lt, ">": operator.gt, "==": operator.eq, "!=": operator.ne}
SHIFTS = {">>": operator.rshift, "<<": operator.lshift}


def reader(kind: Lanes):
    """A function that reads a register at an address."""

    def load(typing, address):
        def code(context, builder, signature, args):
            return builder.load(builder.inttoptr(args[0], ir.PointerType(kind.ir)), align=1)

        return kind(types.intp), code

    return intrinsic(load)


@intrinsic
def write(typing, address, value):
    """Write a register to an address."""

    def code(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], ir.PointerType(args[1].type)), align=1)
        return context.get_dummy_value()

    return types.void(types.intp, value), code


@intrinsic
def chosen(typing, condition, a, b):
    """``a`` in the lanes where the condition holds, else ``b``."""
    return a(condition, a, b), lambda context, builder, signature, args: builder.select(*args)


def numbers(element: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two registers' numbers: some are alike, some of floats are NaN, some integers would be negative with a sign."""
    random = np.random.default_rng(n)
    if element == "f32":
        a, b = random.normal(size=(2, n)).astype(np.float32)
        a[1], b[2], a[n // 2] = np.nan, np.nan, b[n // 2]
        return a, b
    a, b = (random.integers(-(2**31), 2**31, (2, n)) & -1).astype(DTYPES[element])
    a[n // 2] = b[n // 2]
    return a, b


def run(function, *given) -> None:
    numba.njit(function)(*(array.ctypes.data for array in given))


def each_in_turn(lines: list[str], out: np.ndarray, **names):
    """One function of the registers at ``x`` and ``y``, compiled once for all lines: each of them gives a row of
    ``out``."""
    body = [f"    write(out + {i * out.strides[0]}, {line})" for i, line in enumerate(lines)]
    found = {"write": write, "chosen": chosen, **names}
    exec("\n".join(["def apply(x, y, out):", "    u, v = read(x), read(y)", *body]), found)
    return found["apply"]


@pytest.mark.parametrize(("element", "n"), [("f32", 8), ("i32", 16), ("i8", 64)])
def test_each_operator_works_on_two_registers_and_on_a_register_and_one_number(element, n):
    read, (a, b) = reader(Lanes(element, n)), numbers(element, n)
    number, signs = DTYPES[element](3), OPERATORS[element]
    out = np.empty((2 * len(signs), n), a.dtype)
    lines = [f"u {sign} {other}" for sign in signs for other in ("v", "number")]
    run(each_in_turn(lines, out, read=read, number=number), a, b, out)
    for (sign, does), both, one in zip(signs.items(), out[::2], out[1::2], strict=True):
        assert np.array_equal(both, does(a, b), equal_nan=element == "f32"), sign
        assert np.array_equal(one, does(a, number), equal_nan=element == "f32"), sign


@pytest.mark.parametrize("element", ["i32", "i8"])
def test_bits_move_left_and_right_and_nothing_is_kept_of_a_sign(element):
    n = 16
    read, (a, _) = reader(Lanes(element, n)), numbers(element, n)
    unsigned = a.view(np.uint32 if element == "i32" else np.uint8)
    by = (np.arange(n) % 8).astype(a.dtype)
    out = np.empty((2 * len(SHIFTS), n), a.dtype)
    run(each_in_turn([f"u {sign} {other}" for sign in SHIFTS for other in ("v", "3")], out, read=read), a, by, out)
    for (sign, does), both, one in zip(SHIFTS.items(), out[::2], out[1::2], strict=True):
        assert np.array_equal(both.view(unsigned.dtype), does(unsigned, by.view(unsigned.dtype))), sign
        assert np.array_equal(one.view(unsigned.dtype), does(unsigned, unsigned.dtype.type(3))), sign


@pytest.mark.parametrize("element", ["f32", "i32"])
def test_comparisons_give_a_condition_for_each_lane_and_of_a_nan_only_the_unequal_one_holds(element):
    n = 16
    read, (a, b) = reader(Lanes(element, n)), numbers(element, n)
    number, out = a[n // 2], np.empty((2 * len(COMPARISONS), n), a.dtype)
    lines = [f"chosen(u {sign} {other}, u, v)" for sign in COMPARISONS for other in ("v", "number")]
    run(each_in_turn(lines, out, read=read, number=number), a, b, out)
    for (sign, holds), both, one in zip(COMPARISONS.items(), out[::2], out[1::2], strict=True):
        assert np.array_equal(both, np.where(holds(a, b), a, b), equal_nan=element == "f32"), sign
        assert np.array_equal(one, np.where(holds(a, number), a, b), equal_nan=element == "f32"), sign


def test_bytes_are_compared_as_if_they_had_a_sign():
    read, (a, b) = reader(Lanes("i8", 64)), numbers("i8", 64)
    out = np.empty_like(a)

    def apply(x, y, out):
        write(out, chosen(read(x) < read(y), read(x), read(y)))

    run(apply, a, b, out)
    assert np.array_equal(out, np.where(a.view(np.int8) < b.view(np.int8), a, b))


def test_conditions_are_combined():
    read, (a, b) = reader(Lanes("f32", 16)), numbers("f32", 16)
    all_of, any_of, one_of = np.empty_like(a), np.empty_like(a), np.empty_like(a)

    def apply(x, y, all_of, any_of, one_of):
        u, v = read(x), read(y)
        write(all_of, chosen((u > v) & (v > np.float32(0)), u, v))
        write(any_of, chosen((u > v) | (v > np.float32(0)), u, v))
        write(one_of, chosen((u > v) ^ (v > np.float32(0)), u, v))

    run(apply, a, b, all_of, any_of, one_of)
    for found, holds in ((all_of, (a > b) & (b > 0)), (any_of, (a > b) | (b > 0)), (one_of, (a > b) ^ (b > 0))):
        assert np.array_equal(found, np.where(holds, a, b), equal_nan=True)


def test_a_number_fills_a_register_and_functions_of_llvm_work_lane_by_lane():
    read, floats = reader(Lanes("f32", 8)), filled(Lanes("f32", 8), types.float32, "Eight times.")
    integers, root = filled(Lanes("i32", 8), types.int32), lane_by_lane("llvm.sqrt", "The square roots.")
    to_floats, bits = converter("sitofp", "f32", "Integers as floats."), converter("bitcast", "i32", "The bits.")
    a = np.arange(2, 10, dtype=np.float32)
    out, more, last = np.empty_like(a), np.empty_like(a), np.empty(8, np.int32)

    def apply(x, out, more, last):
        write(out, root(read(x)) + floats(np.float32(0.5)))
        write(more, to_floats(integers(np.int32(-7))))
        write(last, bits(read(x)))

    run(apply, a, out, more, last)
    assert np.array_equal(out, np.sqrt(a) + np.float32(0.5)) and (more == -7).all()
    assert np.array_equal(last, a.view(np.int32))


def test_a_function_of_one_register_may_return_another_type_and_lanes_are_picked_from_two():
    read = reader(Lanes("f32", 4))

    def turned(builder, value, kind):
        other = every(builder, builder.extract_element(value, ir.IntType(32)(1)), value.type)
        found = picked(builder, value, other, [3, 2, 1, 7])
        return called(builder, "llvm.maxnum", found, value)

    mixed = of_one(lambda v: v, turned)
    first = of_one(lambda v: types.float32, lambda builder, v, kind: builder.extract_element(v, ir.IntType(32)(0)))
    a = np.array([1, -2, 3, -4], np.float32)
    out, one = np.empty_like(a), np.empty_like(a)

    def apply(x, out, one):
        write(out, mixed(read(x)))
        write(one, mixed(mixed(read(x))) + first(read(x)))

    run(apply, a, out, one)
    assert np.array_equal(out, [1, 3, 3, -2])
    assert np.array_equal(one, np.maximum([-2, 3, 3, 3], out) + 1)


def test_sorts_of_lanes_are_one_type_if_element_and_number_are_the_same_and_know_their_form_in_llvm():
    assert Lanes("f32", 16) == Lanes("f32", 16) != Lanes("f32", 8) and Lanes("i32", 16) != Lanes("f32", 16)
    assert str(Lanes("i8", 64)) == "64 lanes of i8"
    for element, text in (("i1", "i1"), ("i8", "i8"), ("i32", "i32"), ("f32", "float")):
        assert str(Lanes(element, 4).ir) == f"<4 x {text}>"


def test_functions_keep_their_docstrings_and_operators_of_other_types_stay_as_they_are():
    assert (
        "Twice" in lane_by_lane("llvm.sqrt", "Twice").__doc__
        and "Once" in filled(Lanes("f32", 4), types.float32, "Once").__doc__
    )
    assert registers.filled(Lanes("f32", 4), types.float32).__doc__
    assert "Thrice" in converter("sitofp", "f32", "Thrice").__doc__
    assert not of_one(lambda v: v, lambda builder, value, kind: value).__doc__
    assert numba.njit(lambda a, b: (a + b, a < b, a >> 1))(5, 7) == (12, True, 2)
