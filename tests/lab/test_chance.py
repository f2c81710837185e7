"""A report says nothing that is so by chance: few wrong values prove nothing, half of them are not all, and a place of
repair is said as what it is."""

from __future__ import annotations

import numpy as np
from test_detect import made

from miniquant.lab import evaluate, find
from miniquant.lab.detect.chance import differing
from miniquant.lab.judging import _calls
from miniquant.lab.verdict import distinct


def twice(n):
    """Twice a number. -> int"""
    return 2 * n


NUMBERS = made(twice, [(n,) for n in (3, 4, 7, 9, 12, 15, 20, 26, 31, 44)])


def report(spec, function):
    return evaluate(spec, function, search=False)


def test_a_sign_that_is_wrong_once_is_not_called_an_opposite_sign():
    said = repr(report(NUMBERS, lambda n: -14 if n == 7 else 2 * n))
    assert "opposite sign" not in said
    assert "on 1 of 10 cases" in said
    assert "opposite sign, on all 10 cases" in repr(report(NUMBERS, lambda n: -2 * n))


def test_what_nearly_all_wrong_results_show_is_titled_perhaps_with_its_count():
    found = report(NUMBERS, lambda n: -2 * n if n < 40 else 1000 + n * n)
    assert found.mistake.startswith("perhaps ")
    assert "on at least 9 of the 10 wrong cases" in found.cause


def test_what_seven_of_ten_wrong_results_show_is_not_said():
    said = repr(report(NUMBERS, lambda n: -2 * n if n < 21 else 1000 + n * n))
    assert "opposite sign" not in said


def pieces(values):
    """The values, each halved. values: (n,) float64 -> (n,) float64"""
    return values / 2


ARRAYS = made(pieces, [(np.array(v, float),) for v in ([1, 2], [5, 3, 8, 1], [7, 7, 2], [9, 4, 6, 2, 1])])


def test_two_values_that_are_exchanged_once_are_no_other_order():
    def wrong(values):
        return (values / 2)[::-1].copy() if len(values) == 2 else values / 2

    said = repr(report(ARRAYS, wrong))
    assert not any(words in said for words in ("reversed", "sorted", "another order", "exchanged"))


def test_a_changed_argument_is_not_counted_among_the_wrong_results():
    def wrong(values):
        if len(values) == 3:
            values *= 0.5
            return values.copy()
        return values / 2 + values * values if len(values) > 3 else values / 2

    found = report(ARRAYS, wrong)
    assert "the function changes its argument `values`, on 1 of 4 cases" in f"{found.cause} {found.also}"
    assert "on 2 of 4 cases" in f"{found.cause} {found.also}"


def test_an_argument_that_is_changed_beside_a_wrong_result_is_said():
    def wrong(values):
        values += 1
        return values * values

    assert "In all 4 cases with a wrong result, the function changes its argument `values`, too." in repr(
        report(ARRAYS, wrong)
    )


def test_whole_numbers_that_are_almost_right_are_not_called_right_once_rounded():
    assert "rounded" not in repr(report(ARRAYS, lambda values: np.rint(values / 2 + 1e-9) + 1e-7))


def text(name):
    """The name, as it is. -> str"""
    return name + ""


TEXTS = made(text, [(t,) for t in ("ab ", "cd", "ef  ", "gh\t", "ij", "kl ")])


def test_white_space_at_one_end_is_not_called_both_ends():
    found = repr(evaluate(TEXTS, lambda name: name.rstrip()))
    assert "White space at the end of the result is missing" in found
    assert "both" not in found


def test_a_place_of_repair_is_said_as_what_was_tried():
    def wrong(n):
        total = n + n
        if n > 12:
            total = total + 7
        return total

    found = evaluate(NUMBERS, wrong)
    assert "With one small change at `total + 7`, your function is right on all 10 cases" in repr(found)
    assert "fault" not in repr(found)


def test_the_different_wrong_values_of_results_are_counted_once_each():
    assert differing(np.array([0, 1, 1, 2]), np.array([0, 3, 3, 2])) == {"1 3"}
    assert len(differing(b"abcdef", b"abXYef")) == 2
    assert len(differing({"a": 1, "b": 2}, {"a": 1, "b": 3})) == 1
    assert differing([1, (2, 3)], [1, (2, 3)]) == set()
    assert differing(1.0, 2.0) == {"1.0 2.0"}


def test_a_result_of_another_shape_is_no_overflow():
    spec = made(lambda q: q.astype(float) * 2, [(np.int8([1, 2, 3, n]),) for n in (4, 5, 6)])

    def wrong(q):
        return q.astype(float)[1:] * 2 if q.dtype == np.int8 else q * 2.0

    assert "overflow" not in repr(report(spec, wrong))


def test_on_which_side_the_wrong_numbers_lie_is_said_where_nothing_else_is_known():
    spec = made(lambda n: 2.125 * n, [(n,) for n in (3, 4, 7, 9, 12, 15, 20, 26, 31, 44)])
    found = report(spec, lambda n: 2.125 * n * (0.6 + 0.1 * (n * 7 % 5) / 4))
    assert "wrong ones is too small" in found.cause


def test_of_bytes_without_a_pattern_the_length_and_the_first_wrong_byte_are_said():
    spec = made(lambda n: b"HEAD" + bytes([n, 2 * n, 3 * n, 4 * n]), [(n,) for n in (3, 5, 8, 13)])
    found = report(spec, lambda n: b"HEAD" + bytes([n ^ 85, 1 + n // 2, n * n % 251, 99 - n]))
    assert (
        "the number of bytes is right in all of them; the first byte that is wrong is byte 4, counted from 0, in all"
        in found.cause
    )


def test_a_length_that_is_the_same_in_all_cases_is_not_called_the_factor():
    spec = made(lambda data: float(data[0]), [(bytes([n, 7]),) for n in (3, 5, 8, 13, 21)])
    found = repr(report(spec, lambda data: data[0] / 2))
    assert "len(data)" not in found
    assert "2 times too small" in found


def test_a_0_in_place_of_an_array_is_no_statistic_of_the_argument():
    def wrong(values):
        return np.float64(0) if values.max() < 8 else values / 2

    zeros = made(pieces, [(np.array(v, float),) for v in ([0, 0], [0, 0, 0], [0, 0, 0, 0], [5, 3, 8, 1], [9, 4])])
    said = repr(report(zeros, wrong))
    assert "a float64 in place of a numpy array" in said
    assert "median" not in said


def test_last_digits_that_a_float_does_not_hold_are_said():
    spec = made(lambda n: 3 * n, [(n,) for n in (1, 5, 8, 2**40, 2**54 + 1, 2**60 + 3)])
    said = repr(report(spec, lambda n: int(n * 3.0)))
    assert "more than 2**53, and only its last digits are wrong" in said
    assert "last digits" not in repr(report(spec, lambda n: 3 * n + (n > 7)))


def test_an_input_that_is_tried_twice_counts_once():
    calls = [*_calls(NUMBERS, lambda n: n)]
    assert distinct([*calls, *calls[:3]]) == calls


def test_an_item_that_is_one_and_the_same_number_is_not_said_to_be_another_quantity():
    def gradients(weight, bias, hours, jars):
        slope, step = find("gradients").reference(weight, bias, hours, jars)
        return float(np.clip(slope, -100, 100)), step

    report = evaluate(find("gradients"), gradients)
    assert "at `np.clip(slope, -100, 100)`" in report.also and "mean of the errors' signs" not in repr(report)
