"""F16: a weight is a float16, rounded half to even."""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import BlockField, Codec
from .rows import CHUNK

_U = np.uint32
_BEYOND = 143 << 23  # the bits of 65536; those of infinity and NaN are larger still
_SMALLEST_NORMAL = np.full((CHUNK, 1), (127 - 14) << 23, np.uint32)  # the bits of 2⁻¹⁴, as many as a chunk has weights


class F16(Codec):
    """Two bytes a weight; infinities and NaNs stay what they are."""

    dtype = GGMLType.F16
    file_type = 1
    description = "a float16, little-endian"
    fields = (BlockField("value", 2, "values", "a weight, float16", "<e"),)

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """Round half to even, as ``astype`` does; in almost half the time where no weight is beyond float16."""
        x, power = (row[: w.size].reshape(w.shape) for row in scratch.view(np.uint32))
        np.bitwise_and(w.view(np.uint32), _U(0x7FFFFFFF), out=x)  # without the sign, larger numbers have larger bits
        if x.max(initial=0) >= _BEYOND:
            out.view("<f2")[...] = w.astype("<f2")
        else:
            _round(w, x, power, out.view("<u2"))

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """As ``astype`` does, faster: the sign stays at the top, the rest moves to its place, the exponent is changed.

        A float16's exponent counts from 15, a float32's from 127.
        """
        bits = out.view(np.uint32)
        np.copyto(bits, raw.view("<i2"), casting="unsafe")  # the sign fills the upper half
        bits <<= _U(13)
        bits &= _U(0x8FFFE000)
        bits += _U((127 - 15) << 23)
        odd = ((raw.view("<u2") + np.uint16(0x400)) & np.uint16(0x7800)) == 0  # exponents 0 and 31 mean something else
        np.copyto(out, raw.view("<f2"), where=odd)


def _round(w: np.ndarray, x: np.ndarray, power: np.ndarray, half: np.ndarray) -> None:
    """What ``w.astype("<f2").view("<u2")`` gives for weights below 65536 in magnitude.

    w: (n, 1) float32, x: the bits of abs(w), overwritten like ``power``, uint32   ->   half: (n, 1) uint16

    Adding to abs(w) a power of two that is 2¹³ times its own rounds it to float16's 11 bits, and leaves them at the
    end of the sum; what is below float16's normal numbers adds as if it were the smallest of them.
    """
    np.bitwise_and(x, _U(0xFF << 23), out=power)
    np.maximum(power, _SMALLEST_NORMAL[: len(w)], out=power)  # a scalar would be slow here
    power += _U(13 << 23)
    np.add(x.view(np.float32), power.view(np.float32), out=x.view(np.float32))
    power >>= _U(13)
    x += power  # in the lower half now: the 11 bits, and an exponent too large by 126
    np.right_shift(w.view(np.uint32), _U(16), out=power)
    power &= _U(0x8000)
    x += power  # and the sign
    half[...] = x
    half -= np.uint16((126 << 10) % 2**16)
