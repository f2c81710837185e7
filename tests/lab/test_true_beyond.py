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


def test_of_parts_that_are_right_in_some_wrong_results_it_is_not_said_that_they_are_wrong_on_all_cases():
    def gradient_descent(weight, bias, hours, jars, learning_rate, steps):
        x, y, rate = hours.astype(np.float32), jars.astype(np.float32), np.float32(learning_rate)
        w, b = np.float32(weight), np.float32(bias)
        for _ in range(steps):
            error = w * x + b - y
            w, b = w - rate * 2 * (error * x).mean(), b - rate * 2 * error.mean()
        return float(w), float(b)

    text = said(gradient_descent)
    assert "wrong results, with those of further inputs); at least one of these, on all" in text


def test_a_condition_on_what_is_left_of_a_number_does_not_read_as_one_on_each_of_its_bits():
    def get_bits(number, start, count):
        return number >> start & 2**count - 1 if start < number.bit_length() - 1 else 0

    assert "exactly those where `number` without its `start` lowest bits is 1 are wrong" in said(get_bits)


def test_inputs_with_a_scheme_that_the_docstring_lacks_are_not_counted():
    def tensor_bytes(scheme, dims):
        right = {"f32": 4, "f16": 2, "q8_per_channel": 1}
        if not dims:
            return 4
        if scheme in right:
            return right[scheme] * int(np.prod(dims)) + (2 * dims[0] if scheme == "q8_per_channel" else 0)
        return 2 * dims[0] * (dims[1] // 64) + int(np.prod(dims)) // 2 if scheme == "q4_per_group_64" else None

    assert "others are wrong" not in said(tensor_bytes)
