"""Q6_K: sixteen sub-blocks of 16 weights of 6 bits, scales of 8 bits, no mins."""

from __future__ import annotations

import numpy as np

from ....quantization.packing import pack_runs, unpack_runs
from ..types import GGMLType
from .codec import BlockField
from .kquant import QH, SCALES, D, KQuant, f32, fit_scales, float16_bytes, number, scale_weights, sub_blocks
from .search import Search, search_scale

QL = BlockField("ql", 128, "values", "the lower four bits of the weights' integers")


class Q6_K(KQuant):
    """6.5625 bits a weight."""

    dtype = GGMLType.Q6_K
    file_type = 18
    description = (
        "ql, 128 bytes with the lower four bits of every q; qh, 64 bytes with the upper two; scales, 16 signed bytes; "
        "a float16 d; each weight is d × scale × (q - 32)"
    )
    fields = (QL, QH._replace(n_bytes=64), SCALES._replace(n_bytes=16), D)
    sub_block = 16

    def error_weights(self, w: np.ndarray, importance: np.ndarray, mean_square: np.ndarray) -> np.ndarray:
        """The importance of the column alone."""
        return importance

    def encode_piece(self, w: np.ndarray, out: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Scales by search."""
        counts = None if weights is None else sub_blocks(weights, self.sub_block)

        def search(x: np.ndarray) -> Search:
            return search_scale(x, 32, counts)

        fit = fit_scales(w, size=self.sub_block, bottom=-32, scale_bottom=-128, search=search)
        p = self.split(out)
        p["ql"][...] = pack_runs(fit.q & 15, 4, 64)
        p["qh"][...] = pack_runs(fit.q >> 4, 2, 32)
        p["scales"][...] = fit.scales.astype(np.int8).view(np.uint8)
        p["d"][...] = float16_bytes(fit.d)
        out[fit.zero] = 0

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × scale × (q - 32)."""
        p = self.split(raw)
        out[...] = unpack_runs(p["ql"], 4, 64) | unpack_runs(p["qh"], 2, 32) << 4
        out -= f32(32)
        scale_weights(out, number(p["d"]) * p["scales"].view(np.int8))
