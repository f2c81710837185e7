"""IQ3_XXS: four weights at once are a point of a codebook, with a sign each; scales of 4 bits.

Source: ``dequantize_row_iq3_xxs`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codebooks import IQ3_XXS as POINTS
from .codebooks import signs_of_seven
from .codec import BlockField, Codec
from .common import f32
from .kquant import D, number


class IQ3_XXS(Codec):
    """3.0625 bits a weight."""

    dtype = GGMLType.IQ3_XXS
    file_type = 23
    description = (
        "a float16 d; qs, 64 bytes, each the number of a point of a codebook of 256, for 4 weights; 32 bytes, 32 bits "
        "for each 32 weights: four times seven signs, the eighth making their product positive, and above them a "
        "scale; each weight is d × (scale + 1/2) / 2 × sign × magnitude"
    )
    fields = (
        D,
        BlockField("qs", 64, "values", "the numbers of points, a byte for 4 weights"),
        BlockField("scales_and_signs", 32, "scales", "for each 32 weights 28 signs and a scale of 4 bits"),
    )
    encodes = False
    super_block = True
    sub_block = 32

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × (scale + 1/2) / 2 × sign × magnitude."""
        p = self.split(raw)
        packed = np.ascontiguousarray(p["scales_and_signs"]).view("<u4")  # (blocks, 8)
        scale = number(p["d"]) * (f32(0.5) + (packed >> 28).astype(f32)) * f32(0.5)
        bits = packed[..., None] >> np.array([0, 7, 14, 21], np.uint32) & np.uint32(127)  # (blocks, 8, 4)
        weights = scale[..., None, None] * POINTS[p["qs"]].reshape(-1, 8, 4, 8)
        weights *= signs_of_seven(bits)
        out[...] = weights.reshape(-1, 256)
