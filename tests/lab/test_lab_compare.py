"""How a check compares: texts, results that cannot be copied, and mistakes whose last digits differ."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from miniquant.core.arrays import is_torch
from miniquant.lab import exercises
from miniquant.lab.attempt import cases_of, outcomes_of
from miniquant.lab.authoring.checks import renamed
from miniquant.lab.checking import evaluate
from miniquant.lab.compare import difference, equal, kind, short
from miniquant.lab.detect import results
from miniquant.lessons.shared.by_hand import Pair

NAN = float("nan")


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


@pytest.mark.parametrize(
    ("expected", "got", "tolerance"),
    [
        (0.5, np.float32(0.5), 0),
        (3, np.int64(3), 0),
        (True, np.bool_(True), 0),
        (2.0, 2, 0),
        ([0.5, (3, True)], [np.float64(0.5), (np.uint8(3), np.bool_(True))], 0),
        (0.0, -0.0, 0),
        (np.float32([0.0]), np.float32([-0.0]), 0),
        (np.uint32([0x7FC00000]).view(np.float32), np.uint32([0x7FC00001]).view(np.float32), 0),
        (1e9, 1e9 + 0.4, 0.5),
        (np.array([1e9]), np.array([1e9 - 0.4]), 0.5),
    ],
)
def test_the_page_on_words_says_truly_what_a_check_accepts(expected, got, tolerance):
    assert difference(expected, got, tolerance) is None


@pytest.mark.parametrize(
    ("expected", "got", "tolerance"),
    [
        (2, 2.0, 0),
        (1, True, 0),
        (True, 1, 0),
        (b"ab", bytearray(b"ab"), 0),
        ((1, 2), [1, 2], 0),
        ((1, 2), np.array([1, 2]), 0),
        (np.float32([1]), np.float64([1]), 0),
        (np.float32([1]), np.float32([[1]]), 0),
        (np.float32([1]), np.nextafter(np.float32([1]), np.float32(2)), 0),
        (b"\0\0", b"\0\x80", 0),  # 0.0 and -0.0 as float16
        (1e9, 1e9 + 0.6, 0.5),  # no part of a billion
        (np.array([1e9]), np.array([1e9 - 0.6]), 0.5),
    ],
)
def test_the_page_on_words_says_truly_what_a_check_refuses(expected, got, tolerance):
    assert difference(expected, got, tolerance) is not None


def test_the_order_of_keys_counts_only_where_a_text_speaks_of_one():
    for name, spec in exercises().items():
        if spec.ordered:
            assert re.search(r"\border\b", spec.reference.__doc__), name


def test_a_difference_that_a_check_allows_is_the_one_that_its_text_names():
    for name, spec in exercises().items():
        text = " ".join(spec.reference.__doc__.split())
        said = [
            float(number.rstrip(".")) for number in re.findall(r"(?:right to|difference of up to) ([0-9.e-]+)", text)
        ]
        if (
            not said and spec.tolerance and name != "search_clip"
        ):  # which gives back one of the numbers that it is given
            assert "not rounded" in text and spec.tolerance >= 1e-9, name
        else:
            assert said == [spec.tolerance] * len(said), name


def test_arrays_are_empty_only_where_a_text_says_so():
    says = re.compile(r"\bempty\b|\bany shape\b|\bmay be 0\b|\bas in max_abs_error\b")
    for name, spec in exercises().items():
        given = [part for case in cases_of(spec) for part in case]
        arrays = [part for one in given for part in (one.values() if isinstance(one, dict) else [one])]
        if any(isinstance(array, np.ndarray) and not array.size for array in arrays):
            assert says.search(spec.reference.__doc__), name


def test_an_array_of_an_argument_may_be_in_a_dict_that_is_returned():
    def smooth_block(state, inputs, strength):
        return {**state, **exercises()["smooth_block"].reference(state, inputs, strength)}

    def flatten_optimizer(state):
        tensors, text = exercises()["flatten_optimizer"].reference(state)
        return {name: tensor.clone() for name, tensor in tensors.items()}, text

    for function in (smooth_block, flatten_optimizer):
        spec = exercises()[function.__name__]
        assert evaluate(spec, function).passed
        assert evaluate(spec, spec.reference).passed


def test_the_level_of_gptq_may_be_computed_in_float32_or_in_float64():
    spec = exercises()["gptq_matrix"]

    def gptq_matrix(w, scale, minimum, u):
        return spec.reference(w, scale.astype(np.float64), minimum.astype(np.float64), u)

    assert evaluate(spec, gptq_matrix).passed
    assert evaluate(spec, spec.reference).passed


def test_lab_00_leads_to_what_a_check_accepts():
    root = Path(__file__).parents[2]
    assert "](../book/words.md#what-a-check-accepts)" in (root / "solutions/00-five-minutes.ipynb").read_text("utf-8")
    assert "\n## What a check accepts\n" in (root / "book/words.md").read_text("utf-8")


ALIKE = [
    None, 0, 1, True, 1.0, -0.0, 1 + 1e-10, NAN, "a", "b", b"a", b"b", np.int8(1), np.float32(1),
    np.array([1, 2]), np.array([1, 2], np.int8), np.array([1.0, 2]), np.array([1.0, 2 + 1e-10]), np.array([NAN, 2.0]),
    np.array([1.0, NAN]), np.array([[1.0, 2]]), np.array([]), np.array(1.0), np.array(NAN), np.array([np.inf, 1]),
    np.array([-np.inf, 1]), np.array(["a", "b"]), np.array([1j, 2]), torch.tensor([1.0, 2]), torch.tensor([1.0, NAN]),
]  # fmt: skip
ALIKE += [[1, NAN], (1, NAN), [1, 2], [1], (np.array([1.0, NAN]),), {"a": 1, "b": NAN}, {"b": NAN, "a": 1}, {"a": 1}]


@pytest.mark.parametrize(("tolerance", "ordered"), [(0.0, True), (0.0, False), (1e-9, True)])
def test_two_results_are_equal_if_nobody_finds_a_difference_from_either_side(tolerance, ordered):
    for a, b in itertools.product(ALIKE, repeat=2):
        sides = [difference(x, y, tolerance, ordered=ordered) for x, y in ((a, b), (b, a))]
        assert equal(a, b, tolerance, ordered=ordered) == (sides == [None, None]), (a, b)


def test_a_report_does_not_depend_on_what_was_looked_at_before():
    spec = exercises()["pack_int4"]
    some = spec.mistakes[:4]

    def report(mistake):
        found = outcomes_of(spec, mistake.wrong)
        return repr(evaluate(spec, renamed(spec, mistake.wrong), search=False, outcomes=found))

    results._KEPT.clear()
    first = [report(mistake) for mistake in some]
    looked_at = len(results._KEPT)
    assert looked_at > len(some)
    assert [report(mistake) for mistake in some] == first
    assert len(results._KEPT) == looked_at  # nothing was looked at twice


def test_a_mistake_is_named_although_its_last_digits_differ():
    def ceiling_ratio(bits, group_size):
        return float(np.float64(32) / bits) + 1e-12  # "scales forgotten", computed in another way

    assert evaluate(exercises()["ceiling_ratio"], ceiling_ratio).mistake == "scales forgotten"


def test_a_generator_gets_a_report_instead_of_an_exception():
    def beyond_limit(errors, limit):
        return (name for name in errors if not errors[name] <= limit)

    report = evaluate(exercises()["beyond_limit"], beyond_limit, search=False)
    assert report.status == "failed"
    assert "generator" in report.shown.got


@pytest.mark.parametrize(
    "value", [torch.float32, torch.Size([2]), torch.nn.Linear(1, 1)], ids=["dtype", "Size", "module"]
)
def test_what_torch_has_besides_tensors_is_no_tensor_and_gets_a_report(value):
    def max_abs_error(expected, found):
        return value

    assert not is_torch(value)
    assert evaluate(exercises()["max_abs_error"], max_abs_error, search=False).status == "failed"


def test_a_tensor_where_a_float_is_expected_is_named_as_such():
    def max_abs_error(expected, found):
        return (torch.tensor(expected) - torch.tensor(found)).abs().max()

    report = evaluate(exercises()["max_abs_error"], max_abs_error, search=False)
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

    report = evaluate(exercises()["dequantize_per_group"], dequantize_per_group, search=False)
    assert report.mistake == "ValueError raised"
    assert "do not fit into the shape" in report.cause
    assert "cannot reshape" in report.shown.got


def test_an_integer_too_large_for_a_float_is_compared_with_a_float():
    assert difference(4.25, 10**400, 1e-9).what == "the value differs"
    assert difference(10**400, 10**400) is None


def test_a_float32_is_compared_with_a_float_by_what_it_holds():
    third = 100 / 3
    assert difference(third, np.float32(third), 1e-9)
    assert not difference(third, np.float64(third)) and not difference(0.5, np.float32(0.5))
    assert not difference(np.float32(third), np.float32(third))


def test_a_tensor_is_shown_as_one_with_its_own_dtype_also_where_numpy_has_none():
    assert short(torch.tensor([1.5, -2.0], dtype=torch.bfloat16)) == "[1.5, -2.0] (torch tensor, bfloat16, shape (2,))"
    many = short(torch.zeros(50, dtype=torch.bfloat16))
    assert many.startswith("bfloat16 torch tensor of shape (50,) beginning [0.0,")
    assert short(torch.tensor([1, 2])) == "[1, 2] (torch tensor, int64, shape (2,))"
