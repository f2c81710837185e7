"""Q2_0: integers from -1 to 2 in two bits each, with one scale for 64 weights; llama.cpp has it since 2026.

Rounding makes no use of 2: the largest magnitude is the scale, so every quotient is from -1 to 1. A program that
chooses the scale in another way may write it.

Source: ``block_q2_0`` in ggml's ``ggml-common.h``, ``quantize_row_q2_0_ref`` and ``dequantize_row_q2_0`` in
``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from ....quantization.packing import pack_runs, unpack_runs
from ..types import GGMLType
from .codec import BlockField, Codec
from .common import SCALE, f32, float16_at, inverse
from .ternary import round_to_three


class Q2_0(Codec):
    """2.25 bits a weight."""

    dtype = GGMLType.Q2_0
    file_type = 41
    description = (
        "a float16 scale d, then 16 bytes of 2-bit q, four neighbours a byte, the first lowest; each weight is "
        "d × (q - 1)"
    )
    fields = (SCALE, BlockField("qs", 16, "values", "byte j: weights 4 j to 4 j + 3, the first in the lowest two bits"))
    head = GGMLType.Q8_0

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d is the largest magnitude; weights below half of it become 0."""
        d, q = round_to_three(w)
        q[np.isinf(inverse(d))] = 0  # what casting infinity to an integer gives on a PC, within 0 to 3
        out.view("<f2")[:, 0] = d
        out[:, 2:] = pack_runs(q, 2, 1)

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × (q - 1)."""
        out[...] = unpack_runs(raw[:, 2:], 2, 1)
        out -= f32(1)
        out *= float16_at(raw, 0)
