"""What the types of -1, 0 and 1 share: one scale, the largest magnitude of 256 weights.

Source: ``quantize_row_tq1_0_ref``, ``quantize_row_tq2_0_ref`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

import numpy as np

from .codec import BlockField
from .common import f32, inverse

D = BlockField("d", 2, "header", "the scale, float16", "<e")


def round_to_three(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scale of every block, and its weights rounded to -1, 0 or 1, halves away from zero, counted from 0.

    w: (blocks, 256) float32   ->   (blocks,) float32, (blocks, 256) uint8
    """
    d = np.abs(w).max(axis=1)
    x = w * inverse(d)[:, None]
    q = (x >= f32(0.5)).view(np.uint8) + np.uint8(1) - (x <= f32(-0.5)).view(np.uint8)
    q[~np.isfinite(x)] = 1  # what casting infinity to an integer gives on a PC
    return d, q
