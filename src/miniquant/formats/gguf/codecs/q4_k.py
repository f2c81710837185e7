"""Q4_K: eight sub-blocks of 32 weights of 4 bits, scales and mins of 6 bits."""

from __future__ import annotations

import numpy as np

from ....quantization.packing import pack_runs, unpack_runs
from ..types import GGMLType
from .codec import Kernels
from .common import i32, scale_at
from .kquant import (
    DMIN,
    QS,
    SCALES,
    D,
    KQuantWithPackedMins,
    f32,
    fit_scales_and_mins,
    fit_weighted_scales_and_mins,
    packed_at,
    spread_importance,
)


def _dot(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """w: (rows, super-blocks, 144) uint8, x: (super-blocks, 8, 32).

    A weight is d·sc·q - dmin·m, so a sub-block adds d·sc·Σ q·x - dmin·m·Σ x; the second sum is the same for all rows.
    """
    sums = np.zeros((x.shape[0], 8), f32)
    for b in range(x.shape[0]):
        for sub in range(8):
            for i in range(32):
                sums[b, sub] += x[b, sub, i]
    for row in range(first, last):
        total = f32(0)
        for b in range(x.shape[0]):
            block = w[row, b]
            s = block[4:16]
            scaled, least = f32(0), f32(0)
            for pair in range(4):
                sub = 2 * pair
                sc, m = packed_at(s, sub)
                sc2, m2 = packed_at(s, sub + 1)
                q, low, high = block[16 + 32 * pair :], x[b, sub], x[b, sub + 1]
                dot, dot2 = f32(0), f32(0)
                for i in range(32):
                    dot += f32(i32(q[i] & 15)) * low[i]
                    dot2 += f32(i32(q[i] >> 4)) * high[i]
                scaled += f32(sc) * dot + f32(sc2) * dot2
                least += f32(m) * sums[b, sub] + f32(m2) * sums[b, sub + 1]
            total += scale_at(block, 0) * scaled - scale_at(block, 2) * least
        out[row] = total


def _unpack(w: np.ndarray, out: np.ndarray) -> None:
    for row in range(len(w)):
        for b in range(w.shape[1]):
            block, found = w[row, b], out[row, b]
            d, dmin = scale_at(block, 0), scale_at(block, 2)
            for sub in range(8):
                sc, m = packed_at(block[4:16], sub)
                scale, least, q, part = d * f32(sc), dmin * f32(m), block[16 + sub // 2 * 32 :], found[32 * sub :][:32]
                shift = 4 * (sub % 2)
                for i in range(len(part)):
                    part[i] = scale * f32(i32(q[i] >> shift & 15)) - least


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
    kernels = Kernels(_unpack, _dot, width=32)

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
