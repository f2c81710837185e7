"""Q8_1: activations, as ggml rounds them before a product with Q4_1 and Q5_1. No file holds this type: no codec.

It is Q8_0 with one number more: the sum of the block. A weight of those types is d × q + m, so a block of them adds its
m times that sum to the product, and nobody has to add up 32 numbers for each row of the matrix.
"""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import BlockField, split_fields
from .common import SCALE
from .q8_0 import Q8_0

f32 = np.float32
FIELDS = (
    SCALE,
    BlockField(
        "s", 2, "header", "d × the sum of the integers, float16: the min of a block is multiplied with it", "<e"
    ),
    BlockField("qs", 32, "values", "the activations' integers, signed bytes"),
)


def encode_q8_1(x: np.ndarray) -> np.ndarray:
    """x: (..., n) float32, n a multiple of 32   ->   (..., n / 32 · 36) uint8.

    A block is a float16 scale, a float16 sum, and 32 signed bytes. The sum is made with the scale as it was before it
    became a float16. The bytes are those of ``quantize_row_q8_1_ref``.
    """
    blocks = np.ascontiguousarray(x, f32).reshape(-1, 32)
    plain = np.empty((len(blocks), GGMLType.Q8_0.n_bytes), np.uint8)
    raw = np.empty((len(blocks), GGMLType.Q8_1.n_bytes), np.uint8)
    with np.errstate(all="ignore"):  # a scale beyond float16 becomes infinite, as there
        Q8_0().encode(blocks, plain, np.empty((2, blocks.size), f32))
        q = plain[:, 2:].view(np.int8)
        d = np.abs(blocks).max(axis=1) / f32(127)
        s = q.sum(axis=1, dtype=np.int32).astype(f32) * d
        raw[:, :2], raw[:, 4:] = plain[:, :2], plain[:, 2:]
        raw[:, 2:4] = s.astype("<f2")[:, None].view(np.uint8)
    return raw.reshape(*x.shape[:-1], -1)


def decode_q8_1(raw: np.ndarray) -> np.ndarray:
    """The inverse of ``encode_q8_1``, but for the rounding.   (..., k · 36) uint8 -> (..., k · 32) float32."""
    p = split_fields(np.ascontiguousarray(raw).reshape(-1, GGMLType.Q8_1.n_bytes), FIELDS)
    x = np.ascontiguousarray(p["d"]).view("<f2").astype(f32) * p["qs"].view(np.int8)
    return np.asarray(x.reshape(*raw.shape[:-1], -1), f32)
