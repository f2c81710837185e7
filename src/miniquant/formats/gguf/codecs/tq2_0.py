"""TQ2_0: weights of -1, 0 and 1 in two bits each; faster to read than TQ1_0, and larger.

Source: ``quantize_row_tq2_0_ref`` and ``dequantize_row_tq2_0`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from ....quantization.packing import pack_runs, unpack_runs
from ..types import GGMLType
from .codec import Codec
from .common import f32
from .kquant import QS, float16_bytes, number
from .ternary import D, round_to_three


class TQ2_0(Codec):
    """2.0625 bits a weight."""

    dtype = GGMLType.TQ2_0
    file_type = 37
    description = (
        "qs, 64 bytes of 2-bit q in runs of 32, the first 32 weights lowest; a float16 d; each weight is d × (q - 1)"
    )
    fields = (QS._replace(n_bytes=64), D)
    head = GGMLType.Q6_K

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d is the largest magnitude; weights below half of it become 0."""
        d, q = round_to_three(w)
        p = self.split(out)
        p["qs"][...] = pack_runs(q, 2, 32)
        p["d"][...] = float16_bytes(d[:, None])

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × (q - 1)."""
        p = self.split(raw)
        out[...] = unpack_runs(p["qs"], 2, 32)
        out -= f32(1)
        out *= number(p["d"])
