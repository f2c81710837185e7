"""Which inputs get a wrong True or False: how their arguments are related; and if nothing fits, which they are."""

import numpy as np
from test_detect import made

from miniquant.lab import evaluate, find


def fits(size, room):
    """Whether a size is at most a room. -> True or False"""
    return size <= room


CASES = [(1, 2), (3, 3), (5, 4), (2, 9), (7, 7), (8, 1), (4, 6), (9, 3), (6, 6), (0, 5), (2, 1), (3, 8)]
FITS = made(fits, CASES)


def report(function, spec=FITS):
    def fits(size, room):
        return function(size, room)

    return repr(evaluate(spec, fits))


def test_two_numbers_that_are_equal_in_all_wrong_cases_are_said():
    assert "exactly those where `size` is `room` are wrong." in report(lambda size, room: bool(size < room))


def test_wrong_inputs_without_a_property_are_listed():
    text = report(lambda size, room: size <= room if (size, room) not in ((4, 6), (9, 3), (2, 9)) else size > room)
    assert "on 3 of 12 cases; the wrong inputs are `(size, room)` = (2, 9), (4, 6), (9, 3)." in text


def test_of_many_wrong_inputs_some_are_listed():
    wrong = {(1, 2), (5, 4), (4, 6), (8, 1), (2, 1), (3, 3)}
    text = report(lambda size, room: (size <= room) ^ ((size, room) in wrong))
    assert "; some of the wrong inputs are `(size, room)` = (1, 2), (3, 3), (5, 4), (8, 1)." in text


def test_a_number_just_below_a_power_of_two_is_not_called_that_power():
    def fits_inside(offset, size, left):
        return int(offset) + int(size) <= int(left) < 2**63

    text = repr(evaluate(find("fits_inside"), fits_inside))
    assert "exactly those where `left` is 2**63 or more are wrong." in text
    assert "2**64" not in text


def test_a_plain_tuple_in_place_of_a_named_one_has_the_right_type():
    def fit_scale_and_minimum(w, q):
        step = np.ptp(w, axis=1, keepdims=True) / np.maximum(np.ptp(q, axis=1, keepdims=True), 1) + 0.01
        return tuple(x.astype(np.float32) for x in (step, np.median(w, axis=1, keepdims=True) - step))

    assert "right type" not in repr(evaluate(find("fit_scale_and_minimum"), fit_scale_and_minimum))
