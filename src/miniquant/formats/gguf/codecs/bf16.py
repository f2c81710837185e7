"""BF16: a weight is the upper half of a float32."""

from __future__ import annotations

import numpy as np

from ....core.arrays import bfloat16_to_float32
from ..types import GGMLType
from .codec import BlockField, Codec

_U = np.uint32


class BF16(Codec):
    """Two bytes a weight: float32's range with 8 bits of precision."""

    dtype = GGMLType.BF16
    file_type = 32
    description = "a bfloat16, the upper half of a float32, little-endian"
    fields = (BlockField("value", 2, "values", "a weight, bfloat16"),)

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """Rounded half to even; a NaN becomes quiet."""
        bits, half = w.view(np.uint32), out.view("<u2")
        x = scratch[0].view(np.uint32)[: w.size].reshape(w.shape)
        np.right_shift(bits, _U(16), out=x)
        x &= _U(1)
        x += bits
        x += _U(0x7FFF)
        x >>= _U(16)
        half[...] = x
        np.bitwise_and(bits, _U(0x7FFFFFFF), out=x)
        if x.max(initial=0) > 0xFF << 23:
            nan = x > 0xFF << 23
            half[nan] = bits[nan] >> 16 | 64

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """The lower half becomes zeros."""
        bfloat16_to_float32(raw.view("<u2"), out)
