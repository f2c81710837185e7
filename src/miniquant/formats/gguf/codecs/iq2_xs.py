"""IQ2_XS: eight weights at once are a point of a codebook, with a sign each; two scales of 4 bits for 32 weights.

Source: ``dequantize_row_iq2_xs`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from ....quantization.packing import unpack_runs
from ..types import GGMLType
from .codebooks import IQ2_XS as POINTS
from .codebooks import signs_of_seven
from .codec import BlockField, Codec
from .common import f32
from .kquant import SCALES, D, number


class IQ2_XS(Codec):
    """2.3125 bits a weight."""

    dtype = GGMLType.IQ2_XS
    file_type = 20
    description = (
        "a float16 d; qs, 16 bits for each 8 weights: the number of a point of a codebook of 512, and above it seven "
        "signs, the eighth making their product positive; 8 bytes with 16 scales of 4 bits; each weight is "
        "d × (scale + 1/2) / 4 × sign × magnitude"
    )
    fields = (D, BlockField("qs", 64, "values", "points and signs, 16 bits for 8 weights"), SCALES._replace(n_bytes=8))
    encodes = False
    super_block = True
    sub_block = 16

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × (scale + 1/2) / 4 × sign × magnitude."""
        p = self.split(raw)
        qs = np.ascontiguousarray(p["qs"]).view("<u2").reshape(-1, 16, 2)
        scale = number(p["d"]) * (f32(0.5) + unpack_runs(p["scales"], 4, 1).astype(f32)) * f32(0.25)  # (blocks, 16)
        weights = scale[..., None, None] * POINTS[qs & np.uint16(511)]  # (blocks, 16, 2, 8)
        weights *= signs_of_seven(qs >> np.uint16(9))
        out[...] = weights.reshape(-1, 256)
