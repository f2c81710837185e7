"""F32: a weight is a float32. There is nothing to encode or decode."""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import BlockField, Codec, Kernels


def _dot(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    for row in range(first, last):
        total, line = np.float32(0), w[row]
        for i in range(len(x)):
            total += line[i] * x[i]
        out[row] = total


class F32(Codec):
    """Four bytes a weight."""

    dtype = GGMLType.F32
    file_type = 0
    description = "a float32, little-endian"
    fields = (BlockField("value", 4, "values", "a weight, float32", "<f"),)
    identity = True
    kernels = Kernels(dot=_dot, view="<f4")
