"""Q2_K: sixteen sub-blocks of 16 weights of 2 bits, scales and mins of 4 bits."""

from __future__ import annotations

import numpy as np

from ....quantization.packing import pack_runs, unpack_runs
from ..types import GGMLType
from .common import mean_square as mean_square_of
from .common import weighted
from .kquant import (
    DMIN,
    QS,
    SCALES,
    D,
    KQuant,
    absolute_importance,
    fit_scales_and_mins,
    fit_weighted_scales_and_mins,
    float16_bytes,
    number,
    scale_weights,
)


class Q2_K(KQuant):
    """2.625 bits a weight."""

    dtype = GGMLType.Q2_K
    file_type = 21
    description = (
        "scales, 16 bytes with a 4-bit scale and above it a 4-bit min; qs, 64 bytes of 2-bit q; float16 d and dmin; "
        "each weight is d × scale × q - dmin × min"
    )
    fields = (SCALES._replace(n_bytes=16), QS._replace(n_bytes=64), D, DMIN)
    sub_block = 16

    def error_weights(self, w: np.ndarray, importance: np.ndarray, mean_square: np.ndarray) -> np.ndarray:
        """The spread is that of the super-block, once."""
        return weighted(importance, w, mean_square_of(w))

    def encode_piece(self, w: np.ndarray, out: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Scales and mins by search, the error not squared."""
        if weights is not None:
            fit = fit_weighted_scales_and_mins(
                w, weights, size=self.sub_block, top=3, scale_top=15, packed=_packed_in_4_bits
            )
        else:
            fit = fit_scales_and_mins(
                w,
                size=self.sub_block,
                top=3,
                scale_top=15,
                importance=absolute_importance,
                first=-0.5,
                count=15,
                absolute=True,
            )
        p = self.split(out)
        p["scales"][...] = fit.scales | fit.mins << 4
        p["qs"][...] = pack_runs(fit.q, 2, 32)
        p["d"][...], p["dmin"][...] = float16_bytes(fit.d), float16_bytes(fit.dmin)

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × scale × q - dmin × min."""
        p = self.split(raw)
        out[...] = unpack_runs(p["qs"], 2, 32)
        scale_weights(out, number(p["d"]) * (p["scales"] & 15), number(p["dmin"]) * (p["scales"] >> 4))


def _packed_in_4_bits(scales: np.ndarray, mins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a byte keeps of a scale and a min of eight bits; ggml does not cut the scale, so it reaches into the min."""
    return scales & 15, (mins | scales >> 4) & 15
