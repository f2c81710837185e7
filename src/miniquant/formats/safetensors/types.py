"""safetensors: what stands where.

1. <Q length of the header in bytes
2. the header: JSON, {name: {"dtype": "BF16", "shape": [...], "data_offsets": [begin, end]}, "__metadata__": {...}}
3. the data: the tensors back to back, without a gap; offsets count from here

Source: the format section of the safetensors documentation; ``safetensors/src/tensor.rs`` for its limits.
"""

from __future__ import annotations

import math
from enum import Enum

import numpy as np

MAX_HEADER = 100_000_000  # bytes, the library's own limit


class SafetensorsType(Enum):
    """The types of weights, as the header spells them, with what numpy reads them as: it has no bfloat16."""

    F32 = "<f4"
    F16 = "<f2"
    BF16 = "<u2"

    @property
    def numpy(self) -> np.dtype:
        """numpy's type; of BF16, that of its bits."""
        return np.dtype(self.value)

    @property
    def block(self) -> int:
        """Each number is stored by itself."""
        return 1

    @property
    def description(self) -> str:
        """What the bytes of a tensor hold."""
        return f"the weights, {'bfloat16' if self == SafetensorsType.BF16 else self.numpy.name}"

    def bytes_of(self, shape: tuple[int, ...]) -> int:
        """The bytes of a tensor of this shape.

        >>> SafetensorsType.BF16.bytes_of((2, 3))
        12
        """
        return math.prod(shape) * self.numpy.itemsize
