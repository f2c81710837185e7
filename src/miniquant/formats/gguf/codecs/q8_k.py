"""Q8_K: activations, as ggml rounds them before a product with K-quants. No file holds this type: it has no codec."""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import BlockField, split_fields
from .search import largest

f32 = np.float32
FIELDS = (
    BlockField("d", 4, "header", "the scale, float32", "<f"),
    BlockField("qs", 256, "values", "the activations' integers, signed bytes"),
    BlockField("bsums", 32, "header", "sums of 16 of those integers, int16: a min is multiplied with such a sum"),
)


def encode_q8_k(w: np.ndarray) -> np.ndarray:
    """w: (..., n) float32, n a multiple of 256   ->   (..., n / 256 · 292) uint8.

    A super-block is a float32 scale, 256 signed bytes, and 16 sums of 16 of those, each an int16. The bytes are those
    of ``quantize_row_q8_K_ref``; zeros get sums of zero.
    """
    blocks = np.ascontiguousarray(w, f32).reshape(-1, 256)
    extreme = largest(blocks.T)[:, None]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        inverse = np.where(extreme == 0, f32(0), f32(-127) / extreme)
        q = np.fmin(np.rint(inverse * blocks), f32(127)).astype(np.int8)
        d = np.where(extreme == 0, f32(0), f32(1) / inverse)
    sums = q.reshape(-1, 16, 16).sum(axis=2, dtype=np.int16).astype("<i2")
    raw = np.concatenate([d.astype("<f4").view(np.uint8), q.view(np.uint8), sums.view(np.uint8)], axis=1)
    return raw.reshape(*w.shape[:-1], -1)


def decode_q8_k(raw: np.ndarray) -> np.ndarray:
    """The inverse of ``encode_q8_k``, but for the rounding.   (..., k · 292) uint8 -> (..., k · 256) float32."""
    p = split_fields(np.ascontiguousarray(raw).reshape(-1, GGMLType.Q8_K.n_bytes), FIELDS)
    w = np.ascontiguousarray(p["d"]).view("<f4") * p["qs"].view(np.int8)
    return np.asarray(w.reshape(*raw.shape[:-1], -1), f32)
