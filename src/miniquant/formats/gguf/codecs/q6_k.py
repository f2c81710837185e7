"""Q6_K: sixteen sub-blocks of 16 weights of 6 bits, scales of 8 bits, no mins."""

from __future__ import annotations

import numpy as np

from ....quantization.packing import pack_runs, unpack_runs
from ..types import GGMLType
from .codec import BlockField, Kernels
from .common import i32, scale_at
from .kquant import QH, SCALES, D, KQuant, f32, fit_scales, float16_bytes, number, scale_weights, sub_blocks
from .search import Search, search_scale

QL = BlockField("ql", 128, "values", "the lower four bits of the weights' integers")


def _dot(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """w: (rows, super-blocks, 210) uint8, x: (super-blocks, 16, 16), a scale for each 16.

    Four low bits in ``ql``, two high bits in ``qh``: of the four weights that share a byte of ``qh``, two share a byte
    of ``ql`` with one another's neighbours 64 places on.
    """
    for row in range(first, last):
        total = f32(0)
        for b in range(x.shape[0]):
            block = w[row, b]
            scales = block[192:208]
            scaled = f32(0)
            for part in range(4):  # 128 weights are two of these parts
                half, sixteen = part // 2, part % 2
                at = 8 * half + sixteen
                ql, ql2 = block[64 * half + 16 * sixteen :], block[64 * half + 32 + 16 * sixteen :]
                qh = block[128 + 32 * half + 16 * sixteen :]
                x0, x1, x2, x3 = x[b, at], x[b, at + 2], x[b, at + 4], x[b, at + 6]
                d0, d1, d2, d3 = f32(0), f32(0), f32(0), f32(0)
                for i in range(16):
                    high = qh[i]
                    d0 += f32(i32(np.int8((ql[i] & 15 | (high & 3) << 4) - 32))) * x0[i]
                    d1 += f32(i32(np.int8((ql2[i] & 15 | (high & 12) << 2) - 32))) * x1[i]
                    d2 += f32(i32(np.int8((ql[i] >> 4 | high & 48) - 32))) * x2[i]
                    d3 += f32(i32(np.int8((ql2[i] >> 4 | (high & 192) >> 2) - 32))) * x3[i]
                scaled += f32(np.int8(scales[at])) * d0 + f32(np.int8(scales[at + 2])) * d1
                scaled += f32(np.int8(scales[at + 4])) * d2 + f32(np.int8(scales[at + 6])) * d3
            total += scale_at(block, 208) * scaled
        out[row] = total


def _unpack(w: np.ndarray, out: np.ndarray) -> None:
    for row in range(len(w)):
        for b in range(w.shape[1]):
            block, found = w[row, b], out[row, b]
            d = scale_at(block, 208)
            for sub in range(16):
                half, quarter, sixteen = sub // 8, sub // 2 % 4, sub % 2
                scale, part = d * f32(np.int8(block[192 + sub])), found[16 * sub :][:16]
                ql, qh = block[64 * half + 32 * (quarter % 2) + 16 * sixteen :], block[128 + 32 * half + 16 * sixteen :]
                low, high = 4 * (quarter // 2), 2 * quarter
                for i in range(len(part)):
                    part[i] = scale * f32(i32(ql[i] >> low & 15 | (qh[i] >> high & 3) << 4) - 32)


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
    kernels = Kernels(_unpack, _dot, width=16)

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
