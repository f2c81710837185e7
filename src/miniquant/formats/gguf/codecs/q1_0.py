"""Q1_0: 128 signs and a scale, the mean magnitude of the weights.

Source: ``quantize_row_q1_0_ref`` and ``dequantize_row_q1_0`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import BlockField, Codec
from .common import SCALE, f32, float16_at, sums


class Q1_0(Codec):
    """1.125 bits a weight."""

    dtype = GGMLType.Q1_0
    file_type = 40
    description = (
        "a float16 scale d, then 16 bytes of bits, the lowest bit of the first byte first; each weight is d where its "
        "bit is set, else -d"
    )
    fields = (SCALE, BlockField("qs", 16, "values", "a bit for each weight: set where it is not negative"))
    head = GGMLType.Q8_0

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d is the mean magnitude."""
        out.view("<f2")[:, 0] = sums(np.ascontiguousarray(np.abs(w).T)) / f32(128)  # in ggml's order
        out[:, 2:] = np.packbits(w >= 0, axis=1, bitorder="little")

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d or -d."""
        d = float16_at(raw, 0)
        out[...] = np.where(np.unpackbits(raw[:, 2:], axis=1, bitorder="little"), d, -d)
