"""NVFP4: 64 floats of four bits (E2M1), with a scale of 8 bits (unsigned E4M3) for every 16 of them.

Source: ``quantize_row_nvfp4_ref`` and ``dequantize_row_nvfp4`` in ggml's ``ggml-quants.c``; ``ggml_fp32_to_ue4m3`` and
``ggml_ue4m3_to_fp32`` in ``ggml-impl.h``.
"""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import BlockField, Codec
from .common import f32
from .four_bit_floats import VALUES, nearest_value
from .kquant import sub_blocks

_TOP = 0x7E  # 448, the largest E4M3; the next bits mean NaN


def to_e4m3(x: np.ndarray) -> np.ndarray:
    """Positive numbers as unsigned E4M3: 4 bits of exponent, 3 of mantissa, halves rounded up.   float32 -> uint8.

    From 256 on everything becomes 448, as in ggml.

    >>> to_e4m3(np.array([0, 2**-9, 1, 1.0625, 300], np.float32)).tolist()
    [0, 1, 56, 57, 126]
    """
    normal = ((x.view(np.int32) >> 19) + 1 >> 1) - (120 << 3)
    small = np.minimum(x * f32(512) + f32(0.5), f32(7)).astype(np.int32)
    bits = np.where(x < f32(2**-6), small, np.where(x < 256, normal, _TOP))
    return np.where(bits < 120, bits, _TOP).astype(np.uint8)


def from_e4m3(bits: np.ndarray) -> np.ndarray:
    """The inverse of ``to_e4m3``; the sign is ignored, and a positive NaN becomes 0.   uint8 -> float32."""
    exponent, mantissa = (bits >> 3 & 15).astype(np.int32), (bits & 7).astype(f32)
    normal = np.ldexp(f32(1) + mantissa / f32(8), exponent - 7)
    return np.where(bits == 127, f32(0), np.where(exponent == 0, mantissa * f32(2**-9), normal))


class NVFP4(Codec):
    """4.5 bits a weight."""

    dtype = GGMLType.NVFP4
    file_type = 39
    description = (
        "d, 4 bytes, each the scale of 16 weights: a float of 4 bits of exponent and 3 of mantissa, without a sign; "
        "qs, 32 bytes of nibbles, 8 bytes for 16 weights: weight j in the low half of byte j, weight j + 8 in the high "
        "half; each nibble is a float as in MXFP4; each weight is d / 2 × the doubled value"
    )
    fields = (
        BlockField("d", 4, "scales", "a scale for each 16 weights, E4M3 without a sign"),
        BlockField("qs", 32, "values", "floats of four bits, 8 bytes for 16 weights"),
    )
    head = GGMLType.Q8_0
    reach = 448 * 6

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """The scale takes the largest weight to 6, the largest value."""
        x = sub_blocks(w, 16)  # (16, sub-blocks of all)
        d = to_e4m3(np.abs(x).max(axis=0) / f32(6))
        q = nearest_value(x, from_e4m3(d) / f32(2))
        out[:, :4] = d.reshape(-1, 4)
        out[:, 4:] = (q[:8] | q[8:] << 4).T.reshape(-1, 32)

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d / 2 × the doubled value."""
        qs, w = raw[:, 4:].reshape(-1, 4, 8), out.reshape(-1, 4, 16)
        w[..., :8], w[..., 8:] = VALUES[qs & 15], VALUES[qs >> 4]
        w *= (from_e4m3(raw[:, :4]) / f32(2))[..., None]
