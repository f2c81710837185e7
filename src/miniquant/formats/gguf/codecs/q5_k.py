"""Q5_K: eight sub-blocks of 32 weights of 5 bits, scales and mins of 6 bits."""

from __future__ import annotations

import numpy as np

from ....quantization.packing import pack_runs, unpack_runs
from ..types import GGMLType
from .kquant import (
    DMIN,
    QH,
    QS,
    SCALES,
    D,
    KQuantWithPackedMins,
    fit_scales_and_mins,
    fit_weighted_scales_and_mins,
    spread_importance,
)


class Q5_K(KQuantWithPackedMins):
    """5.5 bits a weight."""

    dtype = GGMLType.Q5_K
    file_type = 16
    description = (
        "float16 d and dmin; scales, 12 bytes as in Q4_K; qh, 32 bytes with the fifth bit of every q; qs, 128 bytes as "
        "in Q4_K; each weight is d × scale × q - dmin × min"
    )
    fields = (D, DMIN, SCALES, QH, QS)
    sub_block = 32

    def encode_piece(self, w: np.ndarray, out: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Scales and mins by search."""
        if weights is not None:
            fit = fit_weighted_scales_and_mins(w, weights, size=self.sub_block, top=31, scale_top=63, packed=_cut)
        else:
            fit = fit_scales_and_mins(
                w, size=self.sub_block, top=31, scale_top=63, importance=spread_importance, first=-0.5, count=15
            )
        p = self.split(out)
        self.put_scales(fit, p)
        p["qh"][...] = pack_runs(fit.q >> 4, 1, 32)
        p["qs"][...] = pack_runs(fit.q & 15, 4, 32)

    def unpack_integers(self, p: dict[str, np.ndarray]) -> np.ndarray:
        """0 to 31."""
        q: np.ndarray = unpack_runs(p["qs"], 4, 32) | unpack_runs(p["qh"], 1, 32) << 4
        return q


def _cut(scales: np.ndarray, mins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ggml cuts these, other than in Q4_K."""
    return np.minimum(scales, 63), np.minimum(mins, 63)
