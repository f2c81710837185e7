"""Q5_1: 32 integers of 5 bits, a scale, and a min, which the smallest weight is.

Source: ``quantize_row_q5_1_ref`` and ``dequantize_row_q5_1`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import Codec, Kernels
from .common import (
    FIFTH_BITS,
    MIN,
    NIBBLES,
    SCALE,
    block_sums,
    columns,
    f32,
    fifth_bits_at,
    float16_at,
    i32,
    put_five_bits,
    round_to_levels,
    scale_at,
    take_five_bits,
    weighted,
)
from .search import finer_steps, integers, search_scale_and_min


def _dot(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """w: (rows, blocks, 24) uint8, x: (blocks, 2, 16). A block adds d·Σ q·x + m·Σ x; all rows share the second sum."""
    sums = block_sums(x)
    for row in range(first, last):
        total = f32(0)
        for b in range(x.shape[0]):
            block, low, high = w[row, b], x[b, 0], x[b, 1]
            q, bits, dot = block[8:], fifth_bits_at(block, 4), f32(0)
            for i in range(16):
                dot += f32(i32(q[i] & 15 | (bits >> i & 1) << 4)) * low[i]
                dot += f32(i32(q[i] >> 4 | (bits >> (i + 16) & 1) << 4)) * high[i]
            total += scale_at(block, 0) * dot + scale_at(block, 2) * sums[b]
        out[row] = total


def _unpack(w: np.ndarray, out: np.ndarray) -> None:
    for row in range(len(w)):
        for b in range(w.shape[1]):
            block, low, high = w[row, b], out[row, b, :16], out[row, b, 16:]
            d, m, q, bits = scale_at(block, 0), scale_at(block, 2), block[8:], fifth_bits_at(block, 4)
            for i in range(len(low)):
                low[i] = d * f32(i32(q[i] & 15 | (bits >> i & 1) << 4)) + m
            for i in range(len(high)):
                high[i] = d * f32(i32(q[i] >> 4 | (bits >> (i + 16) & 1) << 4)) + m


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
    weighs = True
    kernels = Kernels(_unpack, _dot, width=16)

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """m is the smallest weight, d is (largest - smallest) / 31; halves are rounded up."""
        x = columns(w, scratch)  # (32, blocks)
        m = x.min(axis=0)
        d = (x.max(axis=0) - m) / f32(31)
        x -= m
        out.view("<f2")[:, 0] = d
        out.view("<f2")[:, 1] = m
        put_five_bits(round_to_levels(x, d, f32(0.5), 31), out[:, 4:])

    def error_weights(self, w: np.ndarray, importance: np.ndarray, mean_square: np.ndarray) -> np.ndarray:
        """The spread is that of the whole row."""
        return weighted(importance, w, mean_square)

    def encode_weighted(self, w: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """Scale and min by search."""
        x, counts = np.ascontiguousarray(w.T), np.ascontiguousarray(weights.T)
        found = search_scale_and_min(x, counts, 31, finer_steps(31), absolute=False, cut_first=True)
        out.view("<f2")[:, 0], out.view("<f2")[:, 1] = found.scale, -found.min
        q = integers(found, len(w), 0, 31)
        put_five_bits(q, out[:, 4:])

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × q + m."""
        take_five_bits(raw[:, 4:], out)
        out *= float16_at(raw, 0)
        out += float16_at(raw, 1)

    def put_levels(self, q: np.ndarray, out: np.ndarray) -> None:
        """As they are."""
        put_five_bits(q.astype(np.uint8).T.copy(), out[:, 4:])
