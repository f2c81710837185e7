"""What a report says of few wrong results is so of further inputs, too."""

from __future__ import annotations

import struct

import numpy as np

from miniquant.lab import evaluate, find


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
