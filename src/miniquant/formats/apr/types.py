"""APR: what stands where. JSON, one object of three keys.

1. "metadata"  an object: what is known about the model
2. "tensors"   an object: name -> {"data": [numbers], "dtype": "float32", "shape": [dims]}
3. "version"   1

Source: Entrenar's specification "GGUF Export Pipeline"; it leaves the details open.
"""

from __future__ import annotations

import math
from enum import Enum

APR_VERSION = 1


class AprType(Enum):
    """The only type: numbers as text, each of which comes back as the same float32."""

    F32 = "float32"

    @property
    def block(self) -> int:
        """Each number is stored by itself."""
        return 1

    @property
    def description(self) -> str:
        """What the bytes of a tensor hold."""
        return "a JSON list of the weights, float32 in decimal digits"

    def bytes_of(self, shape: tuple[int, ...]) -> int:
        """The bytes in memory; how many digits a number takes in the file, its shape does not say."""
        return 4 * math.prod(shape)
