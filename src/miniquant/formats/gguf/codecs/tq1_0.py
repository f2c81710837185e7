"""TQ1_0: weights of -1, 0 and 1, five of them in a byte as the digits of a number in base 3.

Source: ``quantize_row_tq1_0_ref`` and ``dequantize_row_tq1_0`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import BlockField, Codec
from .common import f32
from .kquant import float16_bytes, number
from .ternary import D, round_to_three

_PARTS = ((0, 32, 5), (32, 16, 5), (48, 4, 4))  # the first byte, how many bytes, digits in each


class TQ1_0(Codec):
    """1.6875 bits a weight."""

    dtype = GGMLType.TQ1_0
    file_type = 36
    description = (
        "qs, 48 bytes with five digits in base 3 each, and qh, 4 bytes with four; a float16 d; a byte is n × 256 / "
        "243, rounded up, where n is the number with those digits: multiplied by 3, it carries the next digit; weights "
        "j, j + 32 … j + 128 share byte j of the first 32 bytes, weights 160 + j, 176 + j … a byte of the next 16, "
        "weights 240 + j, 244 + j … a byte of qh; each weight is d × (digit - 1)"
    )
    fields = (
        BlockField("qs", 48, "values", "five digits in base 3, as a fraction of 256"),
        BlockField("qh", 4, "values", "the last 16 weights, four digits each"),
        D,
    )
    head = GGMLType.Q6_K

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d is the largest magnitude; weights below half of it become 0."""
        d, q = round_to_three(w)
        at = 0
        for start, size, count in _PARTS:
            digits = q[:, at : at + size * count].reshape(-1, count, size).astype(np.uint16)
            n = sum(digits[:, i] * np.uint16(3 ** (4 - i)) for i in range(count))  # with four, the last digit is 0
            out[:, start : start + size] = (n * np.uint16(256) + np.uint16(242)) // np.uint16(243)
            at += size * count
        self.split(out)["d"][...] = float16_bytes(d[:, None])

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × (digit - 1)."""
        at = 0
        for start, size, count in _PARTS:
            fraction = raw[:, start : start + size].astype(np.uint16)
            for _ in range(count):
                fraction *= np.uint16(3)
                out[:, at : at + size] = fraction >> np.uint16(8)
                fraction &= np.uint16(255)
                at += size
        out -= f32(1)
        out *= number(self.split(raw)["d"])
