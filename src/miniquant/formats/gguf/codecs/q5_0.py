"""Q5_0: 32 integers of 5 bits and a scale; the weight of largest magnitude becomes -16.

The fifth bits stand apart: 32 of them fill four bytes, and what is left of each integer is a nibble.

Source: ``quantize_row_q5_0_ref`` and ``dequantize_row_q5_0`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import Codec, Kernels
from .common import (
    FIFTH_BITS,
    NIBBLES,
    SCALE,
    columns,
    f32,
    fifth_bits_at,
    first_extreme,
    float16_at,
    i32,
    put_five_bits,
    round_to_levels,
    scale_at,
    take_five_bits,
    weighted,
)
from .search import integers, search_scale


def _dot(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """w: (rows, blocks, 22) uint8, x: (blocks, 2, 16): what the low nibbles are multiplied with, and the high ones."""
    for row in range(first, last):
        total = f32(0)
        for b in range(x.shape[0]):
            block, low, high = w[row, b], x[b, 0], x[b, 1]
            q, bits, dot = block[6:], fifth_bits_at(block, 2), f32(0)
            for i in range(16):
                dot += f32(i32(q[i] & 15 | (bits >> i & 1) << 4) - 16) * low[i]
                dot += f32(i32(q[i] >> 4 | (bits >> (i + 16) & 1) << 4) - 16) * high[i]
            total += scale_at(block, 0) * dot
        out[row] = total


def _unpack(w: np.ndarray, out: np.ndarray) -> None:
    for row in range(len(w)):
        for b in range(w.shape[1]):
            block, low, high = w[row, b], out[row, b, :16], out[row, b, 16:]
            d, q, bits = scale_at(block, 0), block[6:], fifth_bits_at(block, 2)
            for i in range(len(low)):
                low[i] = d * f32(i32(q[i] & 15 | (bits >> i & 1) << 4) - 16)
            for i in range(len(high)):
                high[i] = d * f32(i32(q[i] >> 4 | (bits >> (i + 16) & 1) << 4) - 16)


class Q5_0(Codec):
    """5.5 bits a weight."""

    dtype = GGMLType.Q5_0
    file_type = 8
    description = (
        "a float16 scale d, then 4 bytes whose 32 bits are the fifth bits of the weights, in order; then 16 bytes of "
        "nibbles as in Q4_0; each weight is d × (q - 16)"
    )
    fields = (SCALE, FIFTH_BITS, NIBBLES)
    head = GGMLType.Q8_0
    levels = (-16, 15)
    weighs = True
    kernels = Kernels(_unpack, _dot, width=16)

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d is the weight of largest magnitude / -16; of several, the first."""
        x = columns(w, scratch)  # (32, blocks)
        d = first_extreme(w, x) / f32(-16)
        out.view("<f2")[:, 0] = d
        put_five_bits(round_to_levels(x, d, f32(16.5), 31), out[:, 2:])

    def error_weights(self, w: np.ndarray, importance: np.ndarray, mean_square: np.ndarray) -> np.ndarray:
        """The spread is that of the whole row."""
        return weighted(importance, w, mean_square)

    def encode_weighted(self, w: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """The scale by search."""
        found = search_scale(np.ascontiguousarray(w.T), 16, np.ascontiguousarray(weights.T))
        out.view("<f2")[:, 0] = found.scale
        q = integers(found, len(w), -16, 15)
        put_five_bits(q, out[:, 2:])

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × (q - 16)."""
        take_five_bits(raw[:, 2:], out)
        out -= f32(16)
        out *= float16_at(raw, 0)

    def put_levels(self, q: np.ndarray, out: np.ndarray) -> None:
        """Each plus 16."""
        put_five_bits((q + 16).astype(np.uint8).T.copy(), out[:, 2:])
