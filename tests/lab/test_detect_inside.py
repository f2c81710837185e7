"""What a check sees inside bytes and products: which kind of numbers is wrong, how, and where it was read."""

from __future__ import annotations

import re

import numpy as np
import pytest

from miniquant.lab import evaluate, find
from miniquant.lab.detect.inside import kind_of
from miniquant.lab.detect.places import of_places, of_shapes


def said(name, source):
    """All sentences of the report on a wrong solution of an exercise, in small letters."""
    spec = find(name)
    scope = dict(spec.reference.__globals__)
    exec(source, scope)
    report = evaluate(spec, scope[name], search=False)
    assert report.status == "failed", report
    return f"{report.cause} {report.also}".lower()


Q8 = """
def encode_q8(w):
    scale = ({scale}).astype("<f2")
    divisor = {divisor}
    divisor = np.where(divisor == 0, 1, divisor).astype(np.float32)
    values = np.where(scale == 0, 0, {rounding}(w / divisor)).clip(-127, 127)
    return scale.tobytes() + values.astype(np.int8).tobytes()
"""
RIGHT = "np.abs(w).max(axis=1, keepdims=True) / np.float32(127)"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"scale": "np.median(np.abs(w), axis=1, keepdims=True) / 127"},
            "the median of the absolute values of its row",
        ),
        ({"scale": "np.abs(w[:, 1:]).max(axis=1, keepdims=True) / 127"}, "but for the first place of its row"),
        ({"scale": RIGHT + " * 3"}, "about 3 times too large; the values are right for these scales"),
        ({"scale": f"np.roll({RIGHT}, 1, axis=0)"}, "in the place of each scale stands the scale of the row before"),
        ({"divisor": "scale[::-1]"}, "the scales are right"),
        ({"divisor": "np.full_like(scale, scale.max())"}, "are what the largest of all scales gives"),
        ({"rounding": "np.ceil"}, "the scales are right, and the values are rounded up"),
        ({"divisor": RIGHT}, "the values fit them before they are rounded to float16"),
        ({"rounding": "-np.rint"}, "in the values, every value has the opposite sign; the rest is right"),
    ],
)
def test_stored_scales_and_integers_are_described_apart(change, sentence):
    parts = {"scale": RIGHT, "divisor": "scale", "rounding": "np.rint", **change}
    assert sentence in said("encode_q8", Q8.format(**parts))


DEQUANTIZE = """
def dequantize_q4(raw, dims):
    out, width = dims
    n = out * width // 64
    scale = np.frombuffer(raw, "<f2", count=n).astype(np.float32).reshape(out, -1, 1)
    values = unpack_int4(np.frombuffer(raw, np.uint8, offset=2 * n)).reshape(out, -1, 64)
    return ({product}).reshape(dims).astype(np.float32)
"""


@pytest.mark.parametrize(
    ("product", "sentence"),
    [
        ("values * scale[:, -1:]", "each row is multiplied by the last of its scales"),
        ("values * scale[:1]", "all rows are multiplied by the scales of the first row"),
        ("np.where(values == -8, 8, values) * scale", "the result has 8 where -8 is expected"),
        ("np.where(values < 0, values + 1, values) * scale", "what the scales give with other integers"),
        ("values * scale.reshape(-1)[::-1].reshape(scale.shape)", "in the scales, the right values are in reversed"),
    ],
)
def test_a_wrong_product_says_which_factor_is_wrong(product, sentence):
    assert sentence in said("dequantize_q4", DEQUANTIZE.format(product=product))


HEADER = """
def parse_header(data):
    if len(data) < 16 or data[:8] != b"TFLG" + bytes([1, 0, 0, 0]):
        raise FormatError("no")
    n, m = {numbers}
    if 16 + int.from_bytes(data[12:16], "little") > len(data):
        raise FormatError("no")
    return n, m
"""


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ('struct.unpack_from("<2I", data, 4)', "stands the number of the field"),
        ('*struct.unpack_from("<I", data, 9), *struct.unpack_from("<I", data, 12)', "1 byte too late"),
    ],
)
def test_a_number_from_the_wrong_bytes_is_traced_to_them(numbers, sentence):
    assert sentence in said("parse_header", HEADER.format(numbers=numbers))


def test_bad_input_that_is_accepted_comes_with_the_words_of_a_right_refusal():
    source = """
def choose_dtypes(state, schemes):
    for name, scheme in schemes.items():
        if scheme not in DTYPES or (name not in state and scheme != "f32"):
            raise ValueError(name)
        if name in state and DTYPES[scheme] >= 2 and (state[name].ndim != 2 or
                DTYPES[scheme] == 3 and state[name].shape[1] % 64):
            raise ValueError(name)
    return {name: DTYPES[schemes.get(name, "f32")] for name in state}
"""
    text = said("choose_dtypes", source)
    assert re.search(r'(?i)bad input is accepted.*; (the solution|a right answer) refuses (it|them) with "', text), text


def test_a_field_is_named_without_its_record():
    assert kind_of("the values of row 1, group 2") == "the values of each group"


def sentences(seen):
    return " | ".join(one.text for one in seen)


def test_wrong_values_at_odd_indices_are_traced_to_their_neighbours():
    e = np.arange(8)
    g = e.copy()
    g[1::2] = e[::2]
    assert "in the place of the values at odd indices stand those one index before" in sentences(of_places(e, g))


def test_values_that_moved_are_counted():
    assert "2 places before" in sentences(of_places(np.arange(12), np.arange(-2, 10)))


def test_one_row_in_the_place_of_all_is_named():
    e = np.arange(6).reshape(3, 2)
    assert "all rows are equal to the first one" in sentences(of_places(e, np.tile(e[:1], (3, 1))))


def test_a_part_of_an_array_is_named():
    e = np.arange(8).reshape(2, 4)
    assert "only the values at odd indices are there" in sentences(of_shapes(e, e[:, 1::2]))
    assert "the last axis is twice as long" in sentences(of_shapes(e, np.zeros((2, 8), int)))


def test_right_values_give_no_sentence():
    e = np.arange(8)
    assert not sentences(of_places(e, e))


def test_zeros_are_not_called_nibbles():
    source = "def check_bounds(tensors, data_size):\n    return 0 if not tensors else SOLUTION(tensors, data_size)\n"
    spec = find("check_bounds")
    scope = {"SOLUTION": spec.reference}
    exec(source, scope)
    assert "nibble" not in repr(evaluate(spec, scope["check_bounds"]))


def test_bytes_that_are_too_many_are_traced_to_a_field():
    source = Q8.format(scale=RIGHT, divisor="scale", rounding="np.rint")
    source = source.replace("scale.tobytes() +", "scale.tobytes() + bytes(5) +")
    assert "the scales are right, and the values are too long" in said("encode_q8", source)


def test_codes_that_are_always_exchanged_are_said():
    source = """
def choose_dtypes(state, schemes):
    return {n: {2: 3, 3: 2}.get(c, c) for n, c in SOLUTION(state, schemes).items()}
"""
    spec = find("choose_dtypes")
    scope = {"SOLUTION": spec.reference}
    exec(source, scope)
    report = evaluate(spec, scope["choose_dtypes"], search=False)
    assert "3 where 2 is expected, 2 where 3 is expected" in f"{report.cause} {report.also}"


def test_a_tuple_is_asked_for_by_that_name():
    source = """
def parse_descriptor(data, position):
    (name, dims, dtype, offset), end = SOLUTION(data, position)
    return {"name": name, "dims": dims}, end
"""
    spec = find("parse_descriptor")
    scope = {"SOLUTION": spec.reference}
    exec(source, scope)
    assert "a tuple is asked for" in evaluate(spec, scope["parse_descriptor"], search=False).cause
