"""IQ2_XXS: eight weights at once are a point of a codebook, with a sign each; scales of 4 bits.

Source: ``dequantize_row_iq2_xxs`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codebooks import IQ2_XXS as POINTS
from .codebooks import signs_of_seven
from .codec import BlockField, Codec
from .common import f32
from .kquant import D, number


class IQ2_XXS(Codec):
    """2.0625 bits a weight."""

    dtype = GGMLType.IQ2_XXS
    file_type = 19
    description = (
        "a float16 d; qs, 8 bytes for each 32 weights: four numbers of points of a codebook of 256, then, in 32 bits, "
        "four times seven signs, the eighth making their product positive, and above them a scale; each weight is "
        "d × (scale + 1/2) / 4 × sign × magnitude"
    )
    fields = (D, BlockField("qs", 64, "values", "points, signs and a scale for each 32 weights"))
    encodes = False
    super_block = True
    sub_block = 32

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × (scale + 1/2) / 4 × sign × magnitude."""
        p = self.split(raw)
        qs = p["qs"].reshape(-1, 8, 8)
        packed = np.ascontiguousarray(qs[..., 4:]).view("<u4")  # (blocks, 8, 1)
        scale = number(p["d"]) * (f32(0.5) + (packed[..., 0] >> 28).astype(f32)) * f32(0.25)  # (blocks, 8)
        bits = packed >> np.array([0, 7, 14, 21], np.uint32) & np.uint32(127)  # (blocks, 8, 4)
        weights = scale[..., None, None] * POINTS[qs[..., :4]]  # (blocks, 8, 4, 8)
        weights *= signs_of_seven(bits)
        out[...] = weights.reshape(-1, 256)
