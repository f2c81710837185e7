"""Q4_1: 32 nibbles, a scale, and a min, which the smallest weight is."""

from __future__ import annotations

import numpy as np

from ....quantization.packing import pack_runs
from ..types import GGMLType
from .codec import Codec
from .common import MIN, NIBBLES, SCALE, columns, f32, float16_at, pack_columns, round_to_levels, unpack_nibbles


class Q4_1(Codec):
    """5 bits a weight."""

    dtype = GGMLType.Q4_1
    file_type = 3
    description = "a float16 scale d, a float16 min m, then 16 bytes of nibbles as in Q4_0; each weight is d × q + m"
    fields = (SCALE, MIN, NIBBLES)
    head = GGMLType.Q8_0
    levels = (0, 15)
    has_min = True

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """m is the smallest weight, d is (largest - smallest) / 15; halves are rounded up."""
        x = columns(w, scratch)  # (32, blocks)
        m = x.min(axis=0)
        d = (x.max(axis=0) - m) / f32(15)
        x -= m
        out.view("<f2")[:, 0] = d
        out.view("<f2")[:, 1] = m
        out[:, 4:] = pack_columns(round_to_levels(x, d, f32(0.5), 15)).T

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × q + m."""
        unpack_nibbles(raw[:, 4:], out)
        out *= float16_at(raw, 0)
        out += float16_at(raw, 1)

    def put_levels(self, q: np.ndarray, out: np.ndarray) -> None:
        """As they are."""
        out[:, 4:] = pack_runs(q.astype(np.uint8), 4, 16)
