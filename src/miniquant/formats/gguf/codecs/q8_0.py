"""Q8_0: 32 signed bytes and a scale."""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import BlockField, Codec, Kernels
from .common import SCALE, columns, f32, float16_at, i32, inverse, scale_at

_ALMOST_HALF = np.nextafter(f32(0.5), f32(0))  # half itself would lift the float below one half to 1


def _dot(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """w: (rows, blocks, 34) uint8, x: (blocks, 1, 32)."""
    for row in range(first, last, 2):
        other = min(row + 1, last - 1)  # of an odd number of rows, the last one is computed twice
        total, total2 = f32(0), f32(0)
        for b in range(x.shape[0]):
            block, block2, xb = w[row, b], w[other, b], x[b, 0]
            q, q2 = block[2:], block2[2:]
            dot, dot2 = f32(0), f32(0)
            for i in range(32):
                dot += f32(i32(np.int8(q[i]))) * xb[i]
                dot2 += f32(i32(np.int8(q2[i]))) * xb[i]
            total += scale_at(block, 0) * dot
            total2 += scale_at(block2, 0) * dot2
        out[row], out[other] = total, total2


def _unpack(w: np.ndarray, out: np.ndarray) -> None:
    for row in range(len(w)):
        for b in range(w.shape[1]):
            d, q, found = scale_at(w[row, b], 0), w[row, b, 2:], out[row, b]
            for i in range(len(found)):
                found[i] = d * f32(i32(np.int8(q[i])))


class Q8_0(Codec):
    """8.5 bits a weight."""

    dtype = GGMLType.Q8_0
    file_type = 7
    description = "a float16 scale d, then 32 signed bytes q; each weight is d × q"
    fields = (SCALE, BlockField("qs", 32, "values", "the weights' integers, signed bytes"))
    levels = (-128, 127)
    kernels = Kernels(_unpack, _dot, width=32)

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d is the largest magnitude / 127; halves are rounded away from zero, as C's ``roundf`` does."""
        x = columns(w, scratch)
        d = np.abs(np.maximum(x.max(axis=0), -x.min(axis=0))) / f32(127)  # (blocks,)
        q, half = (row[: w.size].reshape(w.shape) for row in scratch)
        inverted = inverse(d)
        np.multiply(w, inverted[:, None], out=q)
        q[np.isinf(inverted)] = 0
        sign = half.view(np.uint32)
        np.bitwise_and(q.view(np.uint32), np.uint32(0x80000000), out=sign)
        sign |= _ALMOST_HALF.view(np.uint32)
        q += half  # and cut off by the cast
        out.view("<f2")[:, 0] = d
        self.put_levels(q, out)

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × q."""
        out[...] = raw[:, 2:].view(np.int8)
        out *= float16_at(raw, 0)

    def put_levels(self, q: np.ndarray, out: np.ndarray) -> None:
        """Two's complement."""
        out[:, 2:] = q.astype(np.int8).view(np.uint8)
