"""Q4_K: eight sub-blocks of 32 weights of 4 bits, scales and mins of 6 bits."""

from __future__ import annotations

import numpy as np

from ....quantization.packing import pack_runs, unpack_runs
from ..types import GGMLType
from .kquant import (
    DMIN,
    QS,
    SCALES,
    D,
    KQuantWithPackedMins,
    fit_scales_and_mins,
    fit_weighted_scales_and_mins,
    spread_importance,
)


class Q4_K(KQuantWithPackedMins):
    """4.5 bits a weight."""

    dtype = GGMLType.Q4_K
    file_type = 14
    description = (
        "float16 d and dmin; scales, 12 bytes with 8 scales and 8 mins of 6 bits; qs, 128 bytes in runs of 32, whose "
        "low halves hold 32 weights and whose high halves the next 32; each weight is d × scale × q - dmin × min"
    )
    fields = (D, DMIN, SCALES, QS)
    sub_block = 32

    def encode_piece(self, w: np.ndarray, out: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Scales and mins by search."""
        if weights is not None:
            fit = fit_weighted_scales_and_mins(
                w, weights, size=self.sub_block, top=15, scale_top=63, packed=_packed_in_6_bits
            )
        else:
            fit = fit_scales_and_mins(
                w, size=self.sub_block, top=15, scale_top=63, importance=spread_importance, first=-1.0, count=20
            )
        p = self.split(out)
        self.put_scales(fit, p)
        p["qs"][...] = pack_runs(fit.q, 4, 32)

    def unpack_integers(self, p: dict[str, np.ndarray]) -> np.ndarray:
        """0 to 15."""
        return unpack_runs(p["qs"], 4, 32)


def _packed_in_6_bits(scales: np.ndarray, mins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What twelve bytes keep of eight scales and eight mins of eight bits, (blocks, 8) uint8 each.

    ggml cuts none of the first four: their upper two bits mix with those of the last four, which lie beside them.
    """

    def kept(numbers: np.ndarray) -> np.ndarray:
        first, last = numbers[:, :4], numbers[:, 4:]
        return np.hstack([first & 63, last & 15 | (first >> 6 | last >> 4 & 3) << 4])

    return kept(scales), kept(mins)
