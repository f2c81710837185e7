"""MXFP4: 32 floats of four bits (E2M1), and a scale that is a power of two (E8M0).

Source: ``quantize_row_mxfp4_ref`` and ``dequantize_row_mxfp4`` in ggml's ``ggml-quants.c``; the OCP Microscaling
Formats (MX) Specification.
"""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import BlockField, Codec
from .common import NIBBLES, columns, f32, pack_columns, unpack_nibbles
from .four_bit_floats import VALUES, nearest_value, power_of_two


class MXFP4(Codec):
    """4.25 bits a weight."""

    dtype = GGMLType.MXFP4
    file_type = 38
    description = (
        "a byte e, the exponent of the scale, then 16 bytes of nibbles as in Q4_0; each nibble is a float: a sign, two "
        f"bits of exponent, one of mantissa; doubled, they are {' '.join(f'{value:g}' for value in VALUES)}; each "
        "weight is 2^(e - 128) × such a doubled value"
    )
    fields = (BlockField("e", 1, "header", "the scale is 2 to the power of e - 127, E8M0", "<B"), NIBBLES)
    head = GGMLType.Q8_0

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """The scale is the power of two that puts the largest weight between 4 and 8 of it; beyond 6, it is cut.

        An exponent below 0, of blocks whose weights are all below 2^-125, wraps around as in ggml.
        """
        x = columns(w, scratch)  # (32, blocks)
        largest = np.maximum(x.max(axis=0), -x.min(axis=0))
        exponent = np.floor(
            np.log2(largest.astype(np.float64)).astype(f32)
        )  # just below a power of two, it is that one
        e = np.where(largest > 0, exponent + f32(125), f32(0)).astype(np.int32).astype(np.uint8)
        out[:, 0] = e
        out[:, 1:] = pack_columns(nearest_value(x, power_of_two(e))).T

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """2^(e - 128) × value."""
        unpack_nibbles(raw[:, 1:], out)
        np.take(VALUES, out.astype(np.uint8), out=out)
        out *= power_of_two(raw[:, :1])
