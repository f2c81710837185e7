"""IQ4_XS: eight sub-blocks of 32 weights on IQ4_NL's levels, scales of 6 bits.

Source: ``quantize_row_iq4_nl_impl`` and ``dequantize_row_iq4_xs`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from ....quantization.packing import pack_runs, unpack_runs
from ..types import GGMLType
from .codec import BlockField, Codec
from .common import inverse, pack_columns, weighted
from .common import mean_square as mean_square_of
from .iq4_nl import nearest_level, search_levels, unpack_levels
from .kquant import QS, D, f32, float16_bytes, number, scale_weights, sub_blocks
from .search import largest

HIGH = BlockField("scales_h", 2, "scales", "the upper two bits of 8 scales, the first one lowest")
LOW = BlockField("scales_l", 4, "scales", "the lower four bits of 8 scales, two a byte, the first one lowest")


class IQ4_XS(Codec):
    """4.25 bits a weight."""

    dtype = GGMLType.IQ4_XS
    file_type = 30
    description = (
        "a float16 d; scales_h, 2 bytes with the upper two bits of 8 scales; scales_l, 4 bytes with the lower four; "
        "qs, 128 bytes of nibbles, 16 bytes a sub-block as in IQ4_NL; each weight is d × (scale - 32) × level"
    )
    fields = (D, HIGH, LOW, QS)
    head = GGMLType.Q6_K
    super_block = True
    searches = True
    weighs = True
    sub_block = 32

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """The error of a weight counts as much as its square."""
        self.encode_weighted(w, w * w, out)

    def error_weights(self, w: np.ndarray, importance: np.ndarray, mean_square: np.ndarray) -> np.ndarray:
        """The spread is twice that of the super-block."""
        return weighted(importance, w, f32(2) * mean_square_of(w))

    def encode_weighted(self, w: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """Scales by search, then integers for them."""
        x = sub_blocks(w, 32)  # (32, sub-blocks of all)
        found = search_levels(x, sub_blocks(weights, 32)).reshape(-1, 8)
        d = largest(found.T)[:, None] / f32(-32)
        scales = np.fmax(np.fmin(np.rint(inverse(d) * found), f32(31)), f32(-32))
        q = nearest_level(x * inverse((d * scales).reshape(-1)))  # d before it is rounded to float16
        p, bits = self.split(out), (scales + f32(32)).astype(np.uint8)
        p["d"][...] = float16_bytes(d)
        p["scales_h"][...] = pack_runs(bits >> 4, 2, 1)
        p["scales_l"][...] = pack_runs(bits & 15, 4, 1)
        p["qs"][...] = pack_columns(q).T.reshape(-1, 128)

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × (scale - 32) × level."""
        p = self.split(raw)
        unpack_levels(p["qs"].reshape(-1, 16), out.reshape(-1, 32))
        scales = (unpack_runs(p["scales_l"], 4, 1) | unpack_runs(p["scales_h"], 2, 1) << 4).astype(f32)
        scale_weights(out, number(p["d"]) * (scales - f32(32)))
