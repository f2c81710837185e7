"""What a check sees in wrong arrays and bytes: which places and fields are wrong, and what stands there."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from miniquant.lab import evaluate, find
from miniquant.lab.attempt import cases_of
from miniquant.lab.detect import see
from miniquant.lab.judging import _calls
from miniquant.lab.verdict import Facts


def said(name, function):
    """All sentences about the results of a wrong function."""
    spec = find(name)
    facts = Facts(spec, function, _calls(spec, function))
    assert facts.wrong
    return " ".join(seen.text for seen in see(facts)).lower()


def stored(scale):
    return scale.astype(np.float16).astype(np.float32)


def statistic(function):
    return lambda w: stored(function(w) / np.float32(127))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda w: np.sqrt((w * w).mean(axis=1)), "the root of the mean of the squares of its row divided by 127"),
        (lambda w: np.abs(w[:, :1]).max(axis=1), "the absolute value of the first value of its row"),
        (lambda w: np.roll(np.abs(w).max(axis=1), 1), "the largest absolute value of the row before divided by 127"),
        (lambda w: np.abs(w).max(axis=1) * np.float32(127 / 100), "divided by 100, where 127 is right"),
    ],
)
def test_a_scale_from_another_statistic_part_or_divisor_is_told_which(function, words):
    assert words in said("channel_scales", statistic(function))


def ones_for_zeros(w, group_size):
    scale = find("group_scales").reference(w, group_size).copy()
    scale[scale == 0] = 1
    return scale


def smaller_limit(w, scale):
    divisor = np.where(scale == 0, np.inf, scale).astype(np.float32)[:, None]
    return np.rint(w / divisor).clip(-126, 126).astype(np.int8)


def last_row_as_it_is(q, scale):
    w = q.astype(np.float32)
    w[:-1] *= scale[:-1, None]
    return w


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("group_scales", ones_for_zeros, "wrong exactly where the right value is 0: each is 1"),
        ("quantize_per_channel", smaller_limit, "126 where 127 is expected"),
        ("dequantize_per_channel", last_row_as_it_is, "each wrong value is the value of `q` in its place"),
    ],
)
def test_wrong_values_are_told_by_their_places_and_by_what_stands_there(name, function, words):
    assert words in said(name, function)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda s: np.round(s * 1024) / np.float32(1024), "every value is a multiple of 1/1024"),
        (lambda s: np.float32([float(f"{x:.3g}") for x in np.ravel(s)]).reshape(np.shape(s)), "3 significant digits"),
        (lambda s: np.round(s, 4), "4 decimals"),
    ],
)
def test_what_all_results_of_a_function_are_is_said(function, words):
    assert words in said("round_scale", lambda scale: np.asarray(function(scale), np.float32))


def test_a_wrong_scale_beside_wrong_integers_is_told():
    def quantize(w):
        scale = stored(np.abs(w.min()) / np.float32(127))
        divisor = scale if scale > 0 else np.float32(np.inf)
        return np.rint(w / divisor).clip(-127, 127).astype(np.int8), scale

    words = "the scale is the absolute value of the smallest value of the weights"
    assert words in said("quantize_per_tensor", quantize)


@pytest.mark.parametrize("result", [10**400, float("inf"), float("nan"), -(2**1023), 1j, "", [], {}, object(), b"x"])
def test_any_result_gets_a_report(result):
    def bits_per_weight(bits, group_size):
        return result

    report = evaluate(find("bits_per_weight"), bits_per_weight)
    assert report.status == "failed" and report.cause
    assert repr(report) and report._repr_html_()


def test_a_sentence_about_places_is_true_of_the_calls_that_it_counts():
    report = evaluate(find("group_scales"), ones_for_zeros, search=False)
    cases = cases_of(find("group_scales"))
    zeros = sum(bool((find("group_scales").reference(*case) == 0).any()) for case in cases)
    assert f"on {zeros} of {len(cases)} cases" in report.cause


def header(form, *order):
    def function(n_tensors, metadata_len):
        numbers = {"magic": 0x474C4654, "version": 1, "n": n_tensors, "m": metadata_len}
        return struct.pack(form, *(numbers[name] for name in order or numbers))

    return function


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            header("<IBII"),
            "where the field header.version must stand, its number has 1 byte in place of 4",
        ),
        (header("<4Q"), "every field takes twice its bytes, and its number is right"),
        (header("<4I", "version", "magic", "n", "m"), "the fields header.magic and header.version are exchanged"),
        (header("<4I", "magic", "n", "m", "version"), "but header.version comes after header.metadata_len"),
        (lambda n_tensors, metadata_len: header("<4I")(n_tensors, metadata_len).hex().encode(), "written as text"),
    ],
)
def test_wrong_bytes_are_told_by_width_order_and_digits_of_their_fields(function, words):
    assert words in said("header_bytes", function)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("\n", "; ", "each '\\n' is written as '; '"),
        ("=", ": ", "the first '=' of each line is written as ': '"),
    ],
)
def test_a_sign_that_is_always_another_one_is_told(old, new, words):
    right = find("metadata_bytes").reference

    def function(metadata):
        text = right(metadata).decode()
        lines = text.split("\n")
        return (text.replace(old, new) if old == "\n" else "\n".join(x.replace(old, new, 1) for x in lines)).encode()

    assert words in said("metadata_bytes", function)


def test_numbers_that_are_right_within_the_tolerance_in_another_dtype_are_no_fault_of_the_search():
    """``attend`` of float64: no number differs by more than is allowed, and the dtype does."""
    function = find("attend").reference
    assert said("attend", lambda *case: function(*case).astype(np.float64))


def test_of_the_ends_of_a_range_only_those_that_must_be_there_are_named():
    def clipped(w):
        q, scale = find("quantize_per_tensor").reference(w)
        return np.maximum(q, -126), scale

    assert "every value that is wrong must be -127 or 127" in said("quantize_per_tensor", clipped)


def test_two_columns_read_in_the_order_of_the_memory_are_read_by_columns():
    def in_memory(w):
        q, scale = find("quantize_per_tensor").reference(w.ravel("K"))
        return q.reshape(w.shape), scale

    text = repr(evaluate(find("quantize_per_tensor"), in_memory))
    assert "as if they were read by columns in place of rows" in text and "halves" not in text, text
