"""The steps of quantization that a wrong implementation in the catalogue still gets right."""

from __future__ import annotations

import numpy as np


def rounded(scale: np.ndarray) -> np.ndarray:
    """The scale as a file holds it: rounded to float16, as float32."""
    return np.asarray(scale, np.float32).astype(np.float16).astype(np.float32)


def divided(w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """w / scale, and 0 where the scale is 0."""
    scale = np.asarray(scale, np.float32)
    return w / np.where(scale == 0, np.float32(np.inf), scale)


def to_int8(q: np.ndarray, qmax: int = 127) -> np.ndarray:
    """Rounded half to even, clipped, and cast last."""
    return np.rint(q).clip(-qmax, qmax).astype(np.int8)
