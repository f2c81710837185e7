"""IQ3_S: four weights at once are a point of a codebook, with a sign each; scales of 4 bits.

Source: ``dequantize_row_iq3_s`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from ....quantization.packing import unpack_runs
from ..types import GGMLType
from .codebooks import IQ3_S as POINTS
from .codebooks import signs
from .codec import BlockField, Codec
from .common import f32
from .kquant import SCALES, D, number


class IQ3_S(Codec):
    """3.4375 bits a weight."""

    dtype = GGMLType.IQ3_S
    file_type = 26
    description = (
        "a float16 d; qs, 64 bytes, each the lower eight bits of the number of a point of a codebook of 512, for 4 "
        "weights; qh, 8 bytes with the ninth bits; signs, 32 bytes, a bit for each weight; 4 bytes with 8 scales of 4 "
        "bits; each weight is d × (2 × scale + 1) × sign × magnitude"
    )
    fields = (
        D,
        BlockField("qs", 64, "values", "the lower eight bits of the numbers of points, a byte for 4 weights"),
        BlockField("qh", 8, "values", "the ninth bits of the numbers of points"),
        BlockField("signs", 32, "values", "a bit for each weight: set for minus"),
        SCALES._replace(n_bytes=4),
    )
    encodes = False
    super_block = True
    sub_block = 32

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × (2 × scale + 1) × sign × magnitude."""
        p = self.split(raw)
        point = p["qs"] | np.unpackbits(p["qh"], axis=1, bitorder="little").astype(np.uint16) << np.uint16(8)
        scale = number(p["d"]) * (f32(1) + f32(2) * unpack_runs(p["scales"], 4, 1).astype(f32))  # (blocks, 8)
        weights = scale[..., None, None] * POINTS[point].reshape(-1, 8, 4, 8)
        weights *= signs(p["signs"]).reshape(-1, 8, 4, 8)
        out[...] = weights.reshape(-1, 256)
