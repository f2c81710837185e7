"""Blocks of Q8_1, taken apart with struct. That their bytes are ggml's own is tested with the integer products."""

from __future__ import annotations

import struct

import numpy as np

from miniquant.formats.gguf.codecs.q8_1 import FIELDS, decode_q8_1, encode_q8_1


def test_a_block_holds_scale_sum_and_32_bytes_and_gives_scale_times_byte_back():
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    raw = encode_q8_1(x)
    assert raw.shape == (3, 2 * 36)
    back = decode_q8_1(raw)
    assert back.shape == x.shape and back.dtype == np.float32
    for block, given in zip(raw.reshape(-1, 36), back.reshape(-1, 32)):
        d, s, *q = struct.unpack("<ee32b", block.tobytes())
        assert given.tolist() == [d * value for value in q]
        assert abs(s - d * sum(q)) <= abs(s) * 2**-9 + abs(d)
    assert np.abs(back - x).max() <= np.abs(x).max() / 127


def test_its_fields_are_named_as_in_ggml():
    assert [(field.name, field.n_bytes) for field in FIELDS] == [("d", 2), ("s", 2), ("qs", 32)]
