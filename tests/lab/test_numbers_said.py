"""What is said of wrong numbers is true of all of them, also of integers beyond 2**53, at the ends and of tiny ones."""

from __future__ import annotations

import numpy as np
import pytest

from miniquant.lab.detect.leaves import of_leaves
from miniquant.lab.detect.numbers import of_numbers
from miniquant.lab.detect.orders import closely
from miniquant.lab.detect.parts import of_sequences, of_types
from miniquant.lab.detect.patterns import of_patterns
from miniquant.lab.detect.places import of_places
from miniquant.lab.detect.properties import _of_value
from miniquant.lab.detect.seen import number


def texts(seen):
    return " · ".join(one.text for one in seen)


def patterns(e, g):
    return texts(of_patterns((), (), None, np.asarray(e), np.asarray(g)))


def test_integers_that_floats_do_not_tell_apart_are_not_called_right():
    e, g = [5, 2**60], [6, 2**60 + 7]
    for found in (texts(of_numbers(e, g, {})), texts(of_places(e, g)), patterns(e, g)):
        assert "right" not in found
        assert "only" not in found


def test_numbers_within_the_tolerance_are_not_called_wrong():
    e, g = np.array([0.5, 0.25]), np.array([0.50001, 0.25001], np.float32)
    assert "negative" not in texts(of_numbers(e, g, {}, 1e-3))


def test_different_small_offsets_beside_a_large_number_are_not_one_offset():
    assert "too large by" not in patterns([1000.0, 2.0, 3.0], [1000.0001, 2.0004, 3.0002])


def test_the_first_value_has_none_before_it():
    assert "before it" not in patterns([1.0, 2.0, 3.0], [3.0, 1.0, 2.0])
    assert "before it" in patterns([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 2.0, 3.0])
    moved = texts(of_places(np.arange(12.0), np.arange(1.0, 13.0)))
    assert "each value is the one that belongs 1 place further on, where there is one" in moved


def test_a_factor_is_exact_or_about():
    assert "times" not in texts(of_places(np.arange(1.0, 6.0), np.array([1.0, 2.0, 3.0, 4.00008, 5.0001])))
    e = np.array([3.0, 5.0, 7.0])
    assert "is about 1.008 times too large" in texts(of_numbers(e, e * 128 / 127, {}))
    assert "is 4 times too large" in texts(of_numbers(e, e * 4, {}))


def test_whole_numbers_are_said_with_all_digits():
    assert "clipped to -65503 … 65503" in texts(of_numbers([0, 65504, -70000, 3], [0, 65503, -65503, 3], {}))
    assert [number(x) for x in (2.0**20, 123456.5, -0.0)] == ["1048576", "1.235e+05", "0"]


def test_flipped_bits_are_those_of_the_type():
    e = np.array([5, 6, 7, 8], np.int8)
    assert "0xff" in texts(of_numbers(e, ~e, {})).split()


@pytest.mark.parametrize("size", [3, 2000])
def test_arrays_that_differ_where_numpy_shows_no_difference_are_not_the_same_items(size):
    e = [np.full(size, 0.123456789), np.arange(2.0)]
    g = [e[0].copy(), e[1]]
    g[0][size // 2] += 1e-10 if size < 10 else 1
    assert "order" not in texts(of_sequences(e, g))
    assert "order" in texts(of_sequences(e, e[::-1]))


def test_a_text_in_a_list_by_itself_is_no_text_that_is_not_joined():
    assert "joined" not in texts(of_sequences("abc", ["abc"]))
    assert "not joined with ', '" in texts(of_sequences("a, b", ["a", "b"]))


def test_an_infinite_number_is_beyond_every_power_and_an_empty_array_has_a_dtype():
    assert dict(_of_value("`x`", np.inf))["where `x` is 2**24 or more"]
    assert dict(_of_value("`x`", np.zeros((3, 0), np.float32)))["where `x` is float32"]


@pytest.mark.parametrize("values", [{}, {"a": 0.5}, {"a": (1, 2), "b": 3}, {"a": "x" * 50}])
def test_no_value_of_a_dict_is_a_tuple_of_one_whatever_else_it_holds(values):
    assert dict(_of_value("`x`", values))["where no value of `x` is a tuple of one"]


def test_a_text_that_is_empty_is_one_also_beside_numbers():
    assert dict(_of_value("`x`", {"a": "", "b": 1}))["where a value of `x` is empty"]
    assert dict(_of_value("`x`", ["", 1]))["where a text in `x` is empty"]


def test_the_one_value_that_is_not_0_is_not_called_the_largest():
    assert "of the largest size" not in texts(of_numbers([0, 0, 7, 0], [0, 0, 8, 0], {}))
    assert "of the largest size" in texts(of_numbers([0, 2, 7, 0], [0, 2, 8, 0], {}))


@pytest.mark.parametrize(
    ("right", "found"),
    [
        (2**60 + 1, float(2**60)),
        (2**60 + 1, np.array([2**60])),
        ([2**60 + 1, 3], (2**60, 3)),
        (np.array([2**60 + 1, 3]), np.array([2.0**60, 3.0])),
        (np.array([2**60 + 1, 3]), np.array([[2**60, 3]])),
    ],
)
def test_integers_beyond_2_to_53_that_are_wrong_are_not_called_right_in_another_type(right, found):
    assert "right" not in texts(of_types(right, found))


@pytest.mark.parametrize("right", [3, [2**60 + 1, 3], np.array([2**60 + 1, 3])])
def test_right_integers_are_called_right_in_another_type(right):
    found = float(right) if isinstance(right, int) else tuple(right) if isinstance(right, list) else right[None]
    assert "right" in texts(of_types(right, found))


def test_numbers_that_differ_in_their_types_alone_are_not_called_too_small():
    e, g = {"a": 0, "b": 28}, {"a": 0.0, "b": 28.0}
    assert "too small" not in texts(of_leaves(e, g))
    assert "sign" not in texts(of_leaves({"a": 0}, {"a": 0.0}))


def test_a_relation_that_the_check_refuses_holds_but_for_the_last_digits():
    def said(e, g):
        found = closely(lambda: (*of_numbers(e, g, {}), *of_patterns((), (), None, e, g)), e, 1e-9)
        return [one.text for one in found]

    twice = "every value is 2 times too small"
    assert said(15.99999999627471, 7.999999998137355)[0] == twice
    found = said(15.99999999627471, 7.999999999068677)  # twice that is off by more than the check allows
    assert twice not in found
    assert f"but for the last digits, {twice}" in found
    e = np.array([1.0, 2.0, 3.0, 5.5])
    for g, words in ((2 * e, "is 2 times too large"), (-e, "has the opposite sign"), (e[::-1], "reversed order")):
        assert any(words in text for text in said(e, g) if "digits" not in text)
        near = [text for text in said(e, g * (1 + 1e-8)) if words in text]
        assert near
        assert all(text.startswith("but for the last digits, ") for text in near)
    assert "every value is too large by about 0.3333" in said(e, e + 1 / 3)
