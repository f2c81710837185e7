"""Q3_K: sixteen sub-blocks of 16 weights of 3 bits, scales of 6 bits, no mins."""

from __future__ import annotations

import numpy as np

from ....quantization.packing import pack_runs, pack_scales, unpack_runs, unpack_scales
from ..types import GGMLType
from .codec import BlockField
from .kquant import QS, SCALES, D, KQuant, f32, fit_scales, fit_weighted_scales, float16_bytes, number, scale_weights
from .search import search_scale_of_3_bits

HMASK = BlockField("hmask", 32, "values", "the highest bit of the weights' integers")


class Q3_K(KQuant):
    """3.4375 bits a weight."""

    dtype = GGMLType.Q3_K
    file_type = 11
    description = (
        "hmask, 32 bytes with the third bit of every q; qs, 64 bytes with the lower two; scales, 12 bytes with 16 of "
        "6 bits; a float16 d; each weight is d × (scale - 32) × (q - 4)"
    )
    fields = (HMASK, QS._replace(n_bytes=64), SCALES, D)
    sub_block = 16
    pieces = 8

    def encode_piece(self, w: np.ndarray, out: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Scales by search."""
        if weights is not None:
            fit = fit_weighted_scales(w, weights, size=self.sub_block, bottom=-4, scale_bottom=-32)
        else:
            fit = fit_scales(w, size=self.sub_block, bottom=-4, scale_bottom=-32, search=search_scale_of_3_bits)
        p = self.split(out)
        p["hmask"][...] = pack_runs(fit.q >> 2, 1, 32)
        p["qs"][...] = pack_runs(fit.q & 3, 2, 32)
        p["scales"][...] = pack_scales((fit.scales + f32(32)).astype(np.uint8))
        if weights is None:
            p["scales"][fit.d[:, 0] == 0] = 0
        p["d"][...] = float16_bytes(fit.d)

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × (scale - 32) × (q - 4)."""
        p = self.split(raw)
        out[...] = unpack_runs(p["qs"], 2, 32) | unpack_runs(p["hmask"], 1, 32) << 2
        out -= f32(4)
        scale_weights(out, number(p["d"]) * (unpack_scales(p["scales"]).astype(f32) - f32(32)))
