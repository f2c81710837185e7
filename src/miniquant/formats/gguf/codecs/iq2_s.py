"""IQ2_S: eight weights at once are a point of a codebook, with a sign each; two scales of 4 bits for 32 weights.

Source: ``dequantize_row_iq2_s`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from ....quantization.packing import unpack_runs
from ..types import GGMLType
from .codebooks import IQ2_S as POINTS
from .codebooks import signs
from .codec import BlockField, Codec
from .common import f32
from .kquant import SCALES, D, number


class IQ2_S(Codec):
    """2.5625 bits a weight."""

    dtype = GGMLType.IQ2_S
    file_type = 28
    description = (
        "a float16 d; qs, 32 bytes, each the lower eight bits of the number of a point of a codebook of 1024, for 8 "
        "weights; signs, 32 bytes, a bit for each weight; qh, 8 bytes with the upper two bits of the numbers; 8 bytes "
        "with 16 scales of 4 bits; each weight is d × (scale + 1/2) / 4 × sign × magnitude"
    )
    fields = (
        D,
        BlockField("qs", 32, "values", "the lower eight bits of the numbers of points, a byte for 8 weights"),
        BlockField("signs", 32, "values", "a bit for each weight: set for minus"),
        BlockField("qh", 8, "values", "the upper two bits of the numbers of points"),
        SCALES._replace(n_bytes=8),
    )
    encodes = False
    super_block = True
    sub_block = 16

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × (scale + 1/2) / 4 × sign × magnitude."""
        p = self.split(raw)
        point = p["qs"] | unpack_runs(p["qh"], 2, 1).astype(np.uint16) << np.uint16(8)  # (blocks, 32)
        scale = number(p["d"]) * (f32(0.5) + unpack_runs(p["scales"], 4, 1).astype(f32)) * f32(0.25)  # (blocks, 16)
        weights = scale[..., None, None] * POINTS[point].reshape(-1, 16, 2, 8)
        weights *= signs(p["signs"]).reshape(-1, 16, 2, 8)
        out[...] = weights.reshape(-1, 256)
