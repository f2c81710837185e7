"""Q5_1: 32 integers of 5 bits, a scale, and a min, which the smallest weight is.

Source: ``quantize_row_q5_1_ref`` and ``dequantize_row_q5_1`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import Codec
from .common import (
    FIFTH_BITS,
    MIN,
    NIBBLES,
    SCALE,
    columns,
    f32,
    float16_at,
    put_five_bits,
    round_to_levels,
    take_five_bits,
)


class Q5_1(Codec):
    """6 bits a weight."""

    dtype = GGMLType.Q5_1
    file_type = 9
    description = (
        "a float16 scale d, a float16 min m, then 4 bytes of fifth bits and 16 bytes of nibbles as in Q5_0; each "
        "weight is d × q + m"
    )
    fields = (SCALE, MIN, FIFTH_BITS, NIBBLES)
    head = GGMLType.Q8_0
    levels = (0, 31)
    has_min = True

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """m is the smallest weight, d is (largest - smallest) / 31; halves are rounded up."""
        x = columns(w, scratch)  # (32, blocks)
        m = x.min(axis=0)
        d = (x.max(axis=0) - m) / f32(31)
        x -= m
        out.view("<f2")[:, 0] = d
        out.view("<f2")[:, 1] = m
        put_five_bits(round_to_levels(x, d, f32(0.5), 31), out[:, 4:])

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × q + m."""
        take_five_bits(raw[:, 4:], out)
        out *= float16_at(raw, 0)
        out += float16_at(raw, 1)

    def put_levels(self, q: np.ndarray, out: np.ndarray) -> None:
        """As they are."""
        put_five_bits(q.astype(np.uint8).T.copy(), out[:, 4:])
