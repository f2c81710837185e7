"""How a check compares: texts, results that cannot be copied, and mistakes whose last digits differ."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from miniquant.core.arrays import is_torch
from miniquant.lab import exercises
from miniquant.lab.checking import evaluate
from miniquant.lab.compare import difference, equal, kind, short
from miniquant.lessons.shared.by_hand import Pair


def test_a_text_of_several_lines_is_reported_by_its_first_differing_line():
    found = difference("one\ntwo\nthree", "one\n2\nthree")
    assert (found.what, found.expected, found.got) == ("line 2 differs", "'two'", "'2'")


def test_a_newline_at_the_end_of_a_text_is_seen():
    found = difference("one\ntwo", "one\ntwo\n")
    assert (found.what, found.expected, found.got) == ("line 3 differs", "2 lines", "''")


def test_a_single_line_is_reported_as_a_value():
    assert difference("a", "b").what == "the value differs"


def test_results_within_the_tolerance_are_equal():
    assert equal([1.0], [1.0 + 1e-10], tolerance=1e-9)
    assert not equal([1.0], [1.0 + 1e-10])


def test_a_mistake_is_named_although_its_last_digits_differ():
    def ceiling_ratio(bits, group_size):
        return float(np.float64(32) / bits) + 1e-12  # "scales forgotten", computed in another way

    assert evaluate(exercises()["ceiling_ratio"], ceiling_ratio).mistake == "scales forgotten"


def test_a_generator_gets_a_report_instead_of_an_exception():
    def beyond_limit(errors, limit):
        return (name for name in errors if not errors[name] <= limit)

    report = evaluate(exercises()["beyond_limit"], beyond_limit)
    assert report.status == "failed"
    assert "generator" in report.shown.got


@pytest.mark.parametrize(
    "value", [torch.float32, torch.Size([2]), torch.nn.Linear(1, 1)], ids=["dtype", "Size", "module"]
)
def test_what_torch_has_besides_tensors_is_no_tensor_and_gets_a_report(value):
    def max_abs_error(expected, found):
        return value

    assert not is_torch(value)
    assert evaluate(exercises()["max_abs_error"], max_abs_error).status == "failed"


def test_a_tensor_where_a_float_is_expected_is_named_as_such():
    def max_abs_error(expected, found):
        return (torch.tensor(expected) - torch.tensor(found)).abs().max()

    report = evaluate(exercises()["max_abs_error"], max_abs_error)
    assert "torch tensor" in report.shown.got


def test_numbers_are_shown_with_the_digits_of_their_own_type():
    found = difference(np.array([0.1, 0.2], np.float32), np.array([0.1, 0.3], np.float32))
    assert (found.expected, found.got) == ("0.2", "0.3")
    assert short(np.array([[0.1, 2]], np.float32)) == "[[0.1, 2.0]] (float32, shape (1, 2))"
    assert short(np.float32(0.1)) == "0.1"


def test_the_parts_of_a_result_are_called_by_their_names():
    expected = Pair(np.array([1, 2], np.int8), np.float32(0.5))
    assert difference(expected, (np.array([1, 3], np.int8), 0.5)).what == "in q: the element [1] differs"
    assert difference(expected, (expected.q, np.array(0.5, np.float32))) is None  # an array without axes is a number
    assert kind(expected) == "tuple (q, scale)"
    assert short(expected) == "(q = [1, 2] (int8, shape (2,)), scale = 0.5)"


def test_a_broadcasting_error_is_not_taken_for_a_failed_reshape():
    def dequantize_per_group(q, scale):
        return (q.reshape(len(q), -1, 64) * scale[..., None]).reshape(q.shape)

    report = evaluate(exercises()["dequantize_per_group"], dequantize_per_group)
    assert report.mistake == "ValueError raised"
    assert "do not fit into the shape" in report.cause
    assert "cannot reshape" in report.shown.got


def test_an_integer_too_large_for_a_float_is_compared_with_a_float():
    assert difference(4.25, 10**400, 1e-9).what == "the value differs"
    assert difference(10**400, 10**400) is None
