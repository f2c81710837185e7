"""Q4_0: 32 nibbles and a scale; the weight of largest magnitude becomes -8, and the scale has the sign for that."""

from __future__ import annotations

import numpy as np

from ....quantization.packing import pack_runs
from ..types import GGMLType
from .codec import Codec, Kernels
from .common import (
    NIBBLES,
    SCALE,
    columns,
    f32,
    first_extreme,
    float16_at,
    i32,
    pack_columns,
    round_to_levels,
    scale_at,
    unpack_nibbles,
    weighted,
)
from .search import integers, search_scale


def _dot(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """w: (rows, blocks, 18) uint8, x: (blocks, 2, 16): what the low nibbles are multiplied with, and the high ones."""
    for row in range(first, last, 2):
        other = min(row + 1, last - 1)  # of an odd number of rows, the last one is computed twice
        total, total2 = f32(0), f32(0)
        for b in range(x.shape[0]):
            block, block2, low, high = w[row, b], w[other, b], x[b, 0], x[b, 1]
            q, q2 = block[2:], block2[2:]
            dot, dot2 = f32(0), f32(0)
            for i in range(16):
                dot += f32(i32((q[i] & 15) - 8)) * low[i] + f32(i32((q[i] >> 4) - 8)) * high[i]
                dot2 += f32(i32((q2[i] & 15) - 8)) * low[i] + f32(i32((q2[i] >> 4) - 8)) * high[i]
            total += scale_at(block, 0) * dot
            total2 += scale_at(block2, 0) * dot2
        out[row], out[other] = total, total2


def _unpack(w: np.ndarray, out: np.ndarray) -> None:
    for row in range(len(w)):
        for b in range(w.shape[1]):
            d, q, low, high = scale_at(w[row, b], 0), w[row, b, 2:], out[row, b, :16], out[row, b, 16:]
            for i in range(len(low)):
                low[i] = d * f32(i32((q[i] & 15) - 8))
            for i in range(len(high)):
                high[i] = d * f32(i32((q[i] >> 4) - 8))


class Q4_0(Codec):
    """4.5 bits a weight."""

    dtype = GGMLType.Q4_0
    file_type = 2
    description = (
        "a float16 scale d, then 16 bytes; byte j holds weight j in its low half and weight j + 16 in its high half; "
        "each weight is d × (q - 8)"
    )
    fields = (SCALE, NIBBLES)
    head = GGMLType.Q8_0
    levels = (-8, 7)
    weighs = True
    kernels = Kernels(_unpack, _dot, width=16)

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d is the weight of largest magnitude / -8; of several, the first."""
        x = columns(w, scratch)  # (32, blocks)
        d = first_extreme(w, x) / f32(-8)
        out.view("<f2")[:, 0] = d
        out[:, 2:] = pack_columns(round_to_levels(x, d, f32(8.5), 15)).T

    def error_weights(self, w: np.ndarray, importance: np.ndarray, mean_square: np.ndarray) -> np.ndarray:
        """The spread is that of the whole row."""
        return weighted(importance, w, mean_square)

    def encode_weighted(self, w: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """The scale by search."""
        found = search_scale(np.ascontiguousarray(w.T), 8, np.ascontiguousarray(weights.T))
        out.view("<f2")[:, 0] = found.scale
        q = integers(found, len(w), -8, 7)
        out[:, 2:] = pack_columns(q).T

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × (q - 8)."""
        unpack_nibbles(raw[:, 2:], out)
        out -= f32(8)
        out *= float16_at(raw, 0)

    def put_levels(self, q: np.ndarray, out: np.ndarray) -> None:
        """Each plus 8."""
        out[:, 2:] = pack_runs((q + 8).astype(np.uint8), 4, 16)
