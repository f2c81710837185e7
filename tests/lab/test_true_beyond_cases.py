"""What a report says is not disproved by plain inputs beyond the cases, and speaks of no input outside a docstring."""

from __future__ import annotations

import math
import struct

import numpy as np

from miniquant.core.errors import FormatError
from miniquant.lab import evaluate, find
from miniquant.lab.fresh_cases import fresh_cases
from miniquant.lab.more_cases import more_cases
from miniquant.lab.pair_cases import pair_cases


def test_arrays_of_further_inputs_are_like_those_of_the_cases():
    spec = find("pack_int4")
    inputs = [case for case, _ in (*more_cases(spec), *fresh_cases(spec))] + [pair.case for pair in pair_cases(spec)]
    assert len(inputs) > 40
    for (values,) in inputs:
        assert values.size and values.shape[-1] % 2 == 0
        assert values.min() >= -8 and values.max() <= 7


def test_a_condition_does_not_count_inputs_outside_the_docstring():
    def pack_int4(values):
        nib = np.where(values < 0, 15 + values, values).astype(np.uint8) & 0x0F
        return nib[..., 0::2] | (nib[..., 1::2] << 4)

    text = repr(evaluate(find("pack_int4"), pack_int4))
    assert "exactly those where `values` has negative values are wrong" in text


def test_the_last_value_of_each_row_is_said_to_be_so():
    def pack_int4(values):
        u = values.astype(np.uint8) & 0x0F
        out = np.zeros((*u.shape[:-1], u.shape[-1] // 2), dtype=np.uint8)
        for i in range(u.shape[-1] // 2 - 1):
            out[..., i] = u[..., 2 * i] | (u[..., 2 * i + 1] << 4)
        return out

    assert "leaves out the last value in each row of a returned value" in repr(evaluate(find("pack_int4"), pack_int4))


def test_where_another_error_is_raised_no_other_condition_is_called_a_small_change():
    def parse_header(data):
        if len(data) < 16:
            raise FormatError("too short", field="header", offset=0)
        magic, version, n, m = struct.unpack_from("<IIII", data, 0)
        if magic != 0x474C4654:
            raise FormatError("not a GGUF-lite file", field="header.magic", offset=0)
        if version != 1:
            raise ValueError(f"version {version} is not supported")
        if len(data) < 16 + m:
            raise FormatError("metadata is missing", field="header.metadata_len", offset=12)
        return n, m

    text = repr(evaluate(find("parse_header"), parse_header))
    assert "refused with ValueError, and FormatError is asked for" in text and "small change" not in text


def test_an_error_of_python_on_good_input_is_no_refusal():
    reference = find("write_file").reference
    scope = reference.__globals__

    def write_file(path, state, schemes, metadata):
        dtypes = scope["choose_dtypes"](state, schemes)
        block = scope["metadata_bytes"](metadata)
        shapes = {name: w.shape for name, w in state.items()}
        offsets = scope["tensor_offsets"](shapes, dtypes)
        with open(path, "wb") as file:
            file.write(scope["header_bytes"](len(state), len(block)) + block)
            for name in state:
                file.write(scope["descriptor_bytes"](name, shapes[name], dtypes[name], offsets[name]))
            for name, w in state.items():
                file.write(w if dtypes[name] == 0 else scope["encode_tensor"](w, dtypes[name]))

    text = repr(evaluate(find("write_file"), write_file))
    assert "Python raises ValueError" in text and "ndarray is not C-contiguous" in text
    assert "refuses" not in text and "<_io" not in text


def test_a_key_that_another_argument_no_longer_knows_is_more_than_one_change():
    def predict_file_size(shapes, schemes, metadata):
        size = find("predict_file_size").reference(shapes, schemes, metadata)
        return size + 2 * sum(schemes.get(name, "f32").startswith("q4") for name in shapes)

    text = repr(evaluate(find("predict_file_size"), predict_file_size))
    assert "{'W': (1, 64)} in place of" not in text


def test_one_integer_is_not_called_so_much_or_more():
    def ceiling_ratio(bits, group_size):
        return 4.0 if bits == 8 else 32 / (bits + 16 / group_size)

    text = repr(evaluate(find("ceiling_ratio"), ceiling_ratio))
    assert "exactly those where `bits` is 8 are wrong" in text


def test_a_difference_of_quotients_has_brackets():
    def ceiling_ratio(bits, group_size):
        return 32 / bits - 16 / group_size

    text = repr(evaluate(find("ceiling_ratio"), ceiling_ratio))
    assert "The result is (32 divided by `bits`) less (16 divided by `group_size`)" in text


def test_one_case_with_a_result_does_not_show_that_results_are_always_the_same():
    def dequantize_q8(raw, dims):
        result = np.zeros(dims, np.float32)
        if dims[0] > 1:
            raise KeyError(math.prod(dims))
        return result

    assert "for each of" not in repr(evaluate(find("dequantize_q8"), dequantize_q8))


def test_low_bits_that_rounding_hides_are_not_said_to_be_too_much():
    def readme_answers(torch_save, size, parts, costs):
        text = find("readme_answers").reference(torch_save, size, parts, costs)
        return text.replace(f"this file {size / 1e6:.2f} MB", f"this file {size * 1e6:.2f} MB")

    text = repr(evaluate(find("readme_answers"), readme_answers))
    assert "number 3 is a different number" in text and "bits 0" not in text
