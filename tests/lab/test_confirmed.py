"""What is found on the cases is tried on inputs by which nothing is found; what is not so there is not said."""

from __future__ import annotations

import numpy as np
import pytest
from test_detect import made

from miniquant.lab import evaluate, find
from miniquant.lab.compare import equal
from miniquant.lab.detect.keys import of_key_names
from miniquant.lab.fresh_cases import fresh_cases
from miniquant.lab.source import does_otherwise


def total(items):
    """The sum. items: a list of integers -> int"""
    return sum(items)


LISTS = ([2, 5], [3, 4], [7], [6, 2], [8, 9], [5, 5], [3], [1, 5, 2], [2, 1, 6], [4, 1, 3])
TOTAL = made(total, [(items,) for items in LISTS])


def test_a_condition_that_the_cases_have_by_chance_is_not_said():
    said = repr(evaluate(TOTAL, lambda items: sum(items) + 40 * (1 in items), search=False))
    assert "wrong on 3 of 10" in said
    assert "more than 2 items" not in said


def test_a_condition_that_other_inputs_confirm_is_said():
    said = repr(evaluate(TOTAL, lambda items: sum(items) + 40 * (len(items) > 2), search=False))
    assert "exactly those where `items` has more than 2 items are wrong (" in said


@pytest.mark.parametrize(
    ("failing", "tried"), [([9], "of the inputs tried that give a result"), ([5, 5, 5], "of the inputs tried")]
)
def test_inputs_that_raise_an_error_are_wrong_too(failing, tried):
    def wrong(items):
        if items == failing:
            raise ZeroDivisionError
        return sum(items) + 40 * (len(items) > 2)

    said = repr(evaluate(TOTAL, wrong, search=False))
    assert f"{tried}, exactly those where `items` has more than 2 items are wrong (" in said


@pytest.mark.parametrize("name", ["absmax_scale", "descriptor_bytes", "join_nibbles", "tensor_bytes"])
def test_the_fresh_inputs_are_no_cases_and_the_same_each_time(name):
    spec = find(name)
    found = [case for case, _ in fresh_cases(spec)]
    assert len(found) > 20
    assert sum(any(equal(case, old) for old in spec.all_cases()) for case in found) < len(found) / 2
    fresh_cases.cache_clear()
    assert equal(found, [case for case, _ in fresh_cases(spec)])


def row(values):
    """The values, doubled. values: (n,) float64 -> (n,) float64"""
    return 2 * values


ROWS = made(row, [(np.array(v, float),) for v in ([1, 2], [5, 3, 8], [7, 9, 2], [9, 4, 6], [3, 3, 7, -128])])


def test_the_last_value_of_one_wrong_result_is_not_called_the_place():
    said = repr(evaluate(ROWS, lambda values: np.where(values == -128, 5, 2 * values), search=False))
    assert "wrong on 1 of 5" in said
    assert "the last value" not in said.lower()


def test_keys_are_listed_in_one_order_whatever_the_order_of_the_dict():
    def said(keys):
        right = {key: 1 for key in keys}
        wrong = right | {"a.bias": 2, "b.bias": 2}
        return {seen.text for seen in of_key_names(right, wrong, 0.0)}

    keys = ["a.bias", "b.bias", "a.weight", "c.bias"]
    assert said(keys) == said(keys[::-1]) != set()


def joined(low, high):
    return low & 15 | (high << 4 & 15)


@pytest.mark.parametrize(
    ("phrase", "otherwise"),
    [
        ("shifts to the right where the right one shifts to the left (4)", True),
        ("masks bits where the right one shifts them down", False),
        ("takes -1 where the right one takes 0", True),
        ("takes 15 where the right one takes 16", False),
        ("takes uint32 in place of int32", True),
    ],
)
def test_a_solution_that_does_what_the_code_does_not_is_not_named(phrase, otherwise):
    assert does_otherwise(phrase, joined) == otherwise


def twice_in_a_line(data):
    return bytes(255 - b for b in data[:2]) + data[2:4] + bytes(b**3 % 251 for b in data[:2])


def test_a_place_whose_code_stands_twice_is_told_by_its_line_and_its_number():
    def right(data):
        return bytes(255 - b for b in data[:2]) + data[2:4] + bytes(b**3 % 251 for b in data[1:3])

    spec = made(right, [(bytes(i * i * (n + 3) % 256 for i in range(9)),) for n in range(9)])
    said = repr(evaluate(spec, twice_in_a_line))
    assert "at the second `data[:2]` in line " in said


def test_of_what_the_lesson_says_of_the_one_wrong_input_only_what_further_inputs_confirm_is_said():
    def traits(items):
        return {"the list is empty": not items, "the sum is 0": sum(items) == 0, "a 9 is there": 9 in items}

    spec = made(total, [([],), *((items,) for items in LISTS)], traits=traits)
    said = repr(evaluate(spec, lambda items: sum(items) if items else 1, search=False))
    assert "exactly those where the list is empty are wrong (" in said


def test_numbers_of_few_kinds_stay_of_these_kinds_in_fresh_inputs():
    signs = made(lambda signs: 3 * signs, [(np.array(v, float),) for v in ([1, -1], [1, 1, -1], [-1, -1], [1, 1])])
    assert all(np.isin(case[0], (1, -1)).all() for case, _ in fresh_cases(signs))


def scaled(values, scale):
    """The values times the scale. values: (n,) float64, scale: float -> (n,) float64"""
    return values * scale


def test_a_property_that_most_right_inputs_have_too_is_not_said():
    cases = [(np.array([-n, 2.0, n]), float(n % 5)) for n in range(1, 16)] + [(np.array([1.0, 2.0, 3.0]), 1.0)]
    said = repr(evaluate(made(scaled, cases), lambda v, s: v * s + (s > 2), search=False))
    assert "where `values` has negative values" not in said


def test_two_properties_that_fit_alike_are_not_said_where_no_further_input_can_tell():
    def traits(items):
        return {"there are many": len(items) > 2, "a 1 comes early": 1 in items[:2]}

    cases = [(items,) for items in LISTS]
    spec = made(total, cases, traits=traits, observe=lambda function, case: function(*case))
    assert spec.keeps_to_memory is False
    said = repr(evaluate(spec, lambda items: sum(items) + 40 * (1 in items), search=False))
    assert "there are many" not in said and "a 1 comes early" not in said


def test_whole_numbers_are_not_told_by_their_binary_digits():
    values = [(np.array([100.3 * n, 2.0, -n]),) for n in range(1, 8)]
    said = repr(evaluate(made(row, values), lambda v: np.rint(2 * v).astype(np.int8).astype(float), search=False))
    assert "binary digits" not in said


def test_bytes_that_are_reversed_in_most_fields_and_not_in_all_are_not_called_so():
    def right(number):
        return number.to_bytes(4, "little")

    def fields(number):
        return [("number", 0, 4)]

    spec = made(right, [(n,) for n in (1, 2, 3, 5, 7, 8, 9, 258, 772)], fields=fields)
    padded = repr(
        evaluate(spec, lambda number: number.to_bytes(4, "little").rstrip(b"\0").rjust(4, b"\0"), search=False)
    )
    assert "reversed order" not in padded
    assert "reversed order" in repr(evaluate(spec, lambda number: number.to_bytes(4, "big"), search=False))
