"""Q4_1: 32 nibbles, a scale, and a min, which the smallest weight is."""

from __future__ import annotations

import numpy as np

from ....quantization.packing import pack_runs
from ..types import GGMLType
from .codec import Codec, Kernels
from .common import (
    MIN,
    NIBBLES,
    SCALE,
    block_sums,
    columns,
    f32,
    float16_at,
    i32,
    pack_columns,
    round_to_levels,
    scale_at,
    unpack_nibbles,
    weighted,
)
from .search import finer_steps, integers, search_scale_and_min


def _dot(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """w: (rows, blocks, 20) uint8, x: (blocks, 2, 16). A block adds d·Σ q·x + m·Σ x; all rows share the second sum."""
    sums = block_sums(x)
    for row in range(first, last):
        total = f32(0)
        for b in range(x.shape[0]):
            block, low, high = w[row, b], x[b, 0], x[b, 1]
            q, dot = block[4:], f32(0)
            for i in range(16):
                dot += f32(i32(q[i] & 15)) * low[i] + f32(i32(q[i] >> 4)) * high[i]
            total += scale_at(block, 0) * dot + scale_at(block, 2) * sums[b]
        out[row] = total


def _unpack(w: np.ndarray, out: np.ndarray) -> None:
    for row in range(len(w)):
        for b in range(w.shape[1]):
            d, m, q = scale_at(w[row, b], 0), scale_at(w[row, b], 2), w[row, b, 4:]
            low, high = out[row, b, :16], out[row, b, 16:]
            for i in range(len(low)):
                low[i] = d * f32(i32(q[i] & 15)) + m
            for i in range(len(high)):
                high[i] = d * f32(i32(q[i] >> 4)) + m


class Q4_1(Codec):
    """5 bits a weight."""

    dtype = GGMLType.Q4_1
    file_type = 3
    description = "a float16 scale d, a float16 min m, then 16 bytes of nibbles as in Q4_0; each weight is d × q + m"
    fields = (SCALE, MIN, NIBBLES)
    head = GGMLType.Q8_0
    levels = (0, 15)
    has_min = True
    weighs = True
    kernels = Kernels(_unpack, _dot, width=16)

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """m is the smallest weight, d is (largest - smallest) / 15; halves are rounded up."""
        x = columns(w, scratch)  # (32, blocks)
        m = x.min(axis=0)
        d = (x.max(axis=0) - m) / f32(15)
        x -= m
        out.view("<f2")[:, 0] = d
        out.view("<f2")[:, 1] = m
        out[:, 4:] = pack_columns(round_to_levels(x, d, f32(0.5), 15)).T

    def error_weights(self, w: np.ndarray, importance: np.ndarray, mean_square: np.ndarray) -> np.ndarray:
        """The spread is that of the whole row."""
        return weighted(importance, w, mean_square)

    def encode_weighted(self, w: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """Scale and min by search."""
        x, counts = np.ascontiguousarray(w.T), np.ascontiguousarray(weights.T)
        found = search_scale_and_min(x, counts, 15, finer_steps(15), absolute=False, cut_first=True)
        out.view("<f2")[:, 0], out.view("<f2")[:, 1] = found.scale, -found.min
        q = integers(found, len(w), 0, 15)
        out[:, 4:] = pack_columns(q).T

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × q + m."""
        unpack_nibbles(raw[:, 4:], out)
        out *= float16_at(raw, 0)
        out += float16_at(raw, 1)

    def put_levels(self, q: np.ndarray, out: np.ndarray) -> None:
        """As they are."""
        out[:, 4:] = pack_runs(q.astype(np.uint8), 4, 16)
