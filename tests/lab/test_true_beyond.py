"""What a report says of few wrong results is so of further inputs, too."""

from __future__ import annotations

import math
import re
import struct

import numpy as np

from miniquant.lab import evaluate, find
from miniquant.lab.verdict import size_of


def said(function):
    return repr(evaluate(find(function.__name__), function, search=False))


def test_values_of_which_only_ties_are_wrong_are_not_said_to_be_rounded_down():
    def quantize_per_tensor(w):
        scale = np.float32(np.float16(np.abs(w).max() / np.float32(127)))
        quotient = w / (scale if scale > 0 else np.float32(np.inf))
        return np.ceil(quotient - np.float32(0.5)).clip(-127, 127).astype(np.int8), scale

    text = said(quantize_per_tensor)
    assert "the values are rounded with halves down" in text and "are rounded down" not in text


def test_right_bytes_that_stand_after_others_in_one_case_by_chance_are_not_said_to():
    def descriptor_bytes(name, dims, dtype, offset):
        raw, dims = name.encode(), dims or (2,)
        head = struct.pack("<H", len(raw)) + raw + struct.pack(f"<B{len(dims)}I", len(dims), *dims)
        return head + struct.pack("<BQ", dtype, offset)

    assert "come after others" not in said(descriptor_bytes)


def test_numbers_in_proportion_to_a_term_on_few_inputs_are_not_said_to_be():
    def bits_per_weight(bits, group_size):
        return bits + float(np.float16(16 / group_size))

    assert "by (16 / `group_size`)" not in said(bits_per_weight)


def test_of_parts_that_are_right_in_some_wrong_results_it_is_not_said_that_they_are_wrong_on_all_cases():
    def gradient_descent(weight, bias, hours, jars, learning_rate, steps):
        x, y, rate = hours.astype(np.float32), jars.astype(np.float32), np.float32(learning_rate)
        w, b = np.float32(weight), np.float32(bias)
        for _ in range(steps):
            error = w * x + b - y
            w, b = w - rate * 2 * (error * x).mean(), b - rate * 2 * error.mean()
        return float(w), float(b)

    text = said(gradient_descent)
    assert " wrong results, with those of further inputs); at least one of these, on all" in text


def test_a_condition_on_what_is_left_of_a_number_does_not_read_as_one_on_each_of_its_bits():
    def get_bits(number, start, count):
        return number >> start & 2**count - 1 if start < number.bit_length() - 1 else 0

    assert "exactly those where `number` without its `start` lowest bits is 1 are wrong" in said(get_bits)


def test_inputs_with_a_scheme_that_the_docstring_lacks_are_not_counted():
    def tensor_bytes(scheme, dims):
        right = {"f32": 4, "f16": 2, "q8_per_channel": 1}
        if not dims:
            return 4
        if scheme in right:
            return right[scheme] * int(np.prod(dims)) + (2 * dims[0] if scheme == "q8_per_channel" else 0)
        return 2 * dims[0] * (dims[1] // 64) + int(np.prod(dims)) // 2 if scheme == "q4_per_group_64" else None

    assert "others are wrong" not in said(tensor_bytes)


def test_where_all_others_are_wrong_it_is_said_so_and_not_66_of_the_66():
    def round_scale(scale):
        return np.float32(np.float16(np.asarray(scale).reshape(-1)))

    assert re.search(r"where `scale` has 1 axis are right, and all \d+ others are wrong", said(round_scale))


def test_an_array_that_lost_its_axes_is_not_said_to_be_a_number():
    def round_scale(scale):
        return np.squeeze(np.atleast_1d(scale).astype(np.float16)).astype(np.float32)

    text = said(round_scale)
    assert "a float32" not in text and "the shape differs" in text and "1 of 15 cases" in text


def test_a_quotient_just_below_a_half_is_no_half():
    def quantize_per_channel(w, scale):
        column = np.where(scale == 0, np.float32(np.inf), scale)[:, None]
        return np.ceil(w / column - np.float32(0.5)).clip(-127, 127).astype(np.int8)

    with_ties = np.float32([[127, 0.5, -1.5, 2.5], [127, -0.5, 0.5, -0.49999997]])
    assert quantize_per_channel(with_ties, np.float32([1, 1]))[1, 3] == -1  # in float32, not as 0.5 in the other one
    assert "ends in .5" not in said(quantize_per_channel)


def test_an_argument_that_changes_one_result_has_an_effect():
    def from_twos_complement(number, n_bits):
        text = bin(number)
        return number - 2**n_bits if len(text) == n_bits and number > 0 else number

    text = said(from_twos_complement)
    assert "the same result with another" not in text, text


def test_what_is_in_nothing_is_not_said_to_be_wrong():
    def what_costs(shapes, schemes, overhead):
        for name in shapes:
            return find("what_costs").reference({name: shapes[name]}, schemes, overhead)

    text = said(what_costs)
    assert "What is in them" not in text and "The results are not the right ones" in text, text


def test_no_solution_without_a_helper_is_named_where_the_student_has_none():
    def float16_value(data):
        bits = int.from_bytes(data, "little")
        sign, exponent, fraction = bits >> 15, (bits >> 10) & 0x1F, bits & 0x3FF
        factor = -(1**sign)
        if exponent == 31:
            return math.nan if fraction else factor * math.inf
        if exponent == 0:
            return factor * fraction / 1024 * 2**-14
        return factor * (1 + fraction / 1024) * 2 ** (exponent - 15)

    report = evaluate(find("float16_value"), float16_value)
    assert "With one small change at `-(1**sign)`" in report.cause, report


def test_of_an_error_in_a_helper_its_line_is_said_too():
    def halves(n):
        low, high = divmod(n, 1)[:1]
        return low, high

    def join_nibbles(low, high):
        return sum(halves(low)) + high

    text = said(join_nibbles)
    line = join_nibbles.__code__.co_firstlineno + 1
    where = f"in line {line} and there in line {halves.__code__.co_firstlineno + 1} of `halves`"
    assert f"Python raises ValueError {where}, `return sum(halves(low)) + high`: too few values" in text, text


def test_of_cases_that_are_as_long_to_read_the_one_with_smaller_numbers_is_smaller():
    assert size_of((1, 1)) < size_of((8, 4)) < size_of((10, 1))
    assert size_of(([1.0], [0.0])) < size_of(([3.0], [0.0]))
    assert size_of((np.float32(0.5),)) < size_of((np.zeros(2, np.float32),))
    assert size_of((np.array([1e-7]),)) < size_of((np.array([1e-5]),))
    assert size_of((np.array([np.nan, 1]), 10**400)) > size_of((np.array([np.nan, 1]), 10**399))


def test_what_is_in_an_array_that_was_never_set_is_not_told():
    def ungroup(groups):
        w = np.empty((groups.shape[0], groups.shape[1] * groups.shape[2]), groups.dtype)
        return w[:, [groups.shape[2] * groups.shape[1]]]

    text = said(ungroup)
    assert "Python raises IndexError" in text and "`w` is " not in text, text
