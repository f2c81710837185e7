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
    assert "exactly those where `size` is `room` are wrong (" in report(lambda size, room: bool(size < room))


def test_wrong_inputs_without_a_property_are_listed():
    text = report(lambda size, room: size <= room if (size, room) not in ((4, 6), (9, 3), (2, 9)) else size > room)
    assert "on 3 of 12 cases; wrong inputs are, for example, `(size, room)` = (4, 6), (2, 9), (9, 3)." in text


def test_of_many_wrong_inputs_some_are_listed():
    wrong = {(1, 2), (5, 4), (4, 6), (8, 1), (2, 1), (3, 3)}
    text = report(lambda size, room: (size <= room) ^ ((size, room) in wrong))
    assert "; wrong inputs are, for example, `(size, room)` = (1, 2), (2, 1), (3, 3), (5, 4)." in text


def test_a_number_just_below_a_power_of_two_is_not_called_that_power():
    def fits_inside(offset, size, left):
        return int(offset) + int(size) <= int(left) < 2**63

    text = repr(evaluate(find("fits_inside"), fits_inside, search=False))
    assert "exactly those where `left` is 2**63 or more and the answer is True are wrong (" in text
    assert "2**64" not in text


def test_a_plain_tuple_in_place_of_a_named_one_has_the_right_type():
    def fit_scale_and_minimum(w, q):
        step = np.ptp(w, axis=1, keepdims=True) / np.maximum(np.ptp(q, axis=1, keepdims=True), 1) + 0.01
        return tuple(x.astype(np.float32) for x in (step, np.median(w, axis=1, keepdims=True) - step))

    assert "right type" not in repr(evaluate(find("fit_scale_and_minimum"), fit_scale_and_minimum, search=False))


def test_the_columns_beside_one_that_an_argument_names_are_said():
    def gptq_column(w, j, rounded, u):
        new = w.copy()
        new[:, j] = rounded
        new[:, j + 2 :] += np.outer(rounded - w[:, j], u[j, j + 2 :] / u[j, j]) * 0.5
        new[:, j + 1 : j + 2] += np.outer(rounded - w[:, j], u[j, j + 1 : j + 2] / u[j, j])
        return new

    text = repr(evaluate(find("gptq_column"), gptq_column, search=False))
    assert "Values are wrong exactly in the columns after column `j` + 1" in text


def test_columns_of_bytes_that_are_not_used_are_said():
    def q8_q8_dot(a, b):
        total = 0.0
        for x, y in zip(a, b):
            d = float(x[:2].view("<f2")[0])
            total += d * d * int(x[2:].view(np.int8).astype(int) @ y[2:].view(np.int8).astype(int))
        return total

    assert "Where columns 0 and 1 of `b` were changed" in repr(evaluate(find("q8_q8_dot"), q8_q8_dot))


def test_what_wrong_numbers_are_off_by_is_said_in_proportion():
    def k_bits(q_bits, scale_bits, sub_block, mins, floats):
        return q_bits + scale_bits * (1 + mins) / sub_block + 2 * floats / 256

    text = repr(evaluate(find("k_bits"), k_bits, search=False))
    assert "Every number is too small by 0.05469 times `floats`, on 13 of 14 cases" in text


def test_few_wrong_numbers_without_a_pattern_come_with_their_inputs():
    def room(size, width):
        """What is left. -> int"""
        return 100 - size * width

    def wrong(size, width):
        return {(3, 5): 71, (6, 8): 33, (9, 4): 90}.get((size, width), 100 - size * width)

    cases = [(3, 5), (1, 2), (6, 8), (9, 9), (9, 4), (3, 8), (6, 5), (1, 4), (5, 5), (4, 4)]
    wrong.__name__ = "room"
    text = repr(evaluate(made(room, cases), wrong, search=False))
    assert "on 3 of 10 cases; wrong inputs are, for example, `(size, width)` = (3, 5), (9, 4), (6, 8)." in text


def test_wrong_cases_of_more_than_one_row_are_not_told_by_it_if_some_of_one_row_are_wrong():
    def q8_dot(blocks, x):
        d = blocks[:, :2].copy().view("<f2").astype(np.float32)[:, 0]
        q = blocks[:, 2:].astype(np.int8).astype(np.float32)
        return float((d * (q * x.reshape(32, len(blocks)).T).sum(axis=1)).sum())

    text = repr(evaluate(find("q8_dot"), q8_dot, search=False))
    assert "`blocks` has more than one row" not in text
