"""Q8_0: 32 signed bytes and a scale."""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import BlockField, Codec
from .common import SCALE, columns, f32, float16_at, inverse

_ALMOST_HALF = np.nextafter(f32(0.5), f32(0))  # half itself would lift the float below one half to 1


class Q8_0(Codec):
    """8.5 bits a weight."""

    dtype = GGMLType.Q8_0
    file_type = 7
    description = "a float16 scale d, then 32 signed bytes q; each weight is d × q"
    fields = (SCALE, BlockField("qs", 32, "values", "the weights' integers, signed bytes"))
    levels = (-128, 127)

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
