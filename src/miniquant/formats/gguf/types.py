"""The tensor types that a GGUF file may name, and the size of a block of each; ``codecs`` encodes and decodes them.

Source: ``enum ggml_type`` in ``ggml.h``, and the sizes of the structs in ``ggml-common.h``.
"""

from __future__ import annotations

import math
from enum import IntEnum

from ...core.errors import QuantizationError


class GGMLType(IntEnum):
    """The tensor types of GGUF, with ggml's numbers (``enum ggml_type``)."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q8_1 = 9
    Q2_K = 10
    Q3_K = 11
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    Q8_K = 15
    IQ2_XXS = 16
    IQ2_XS = 17
    IQ3_XXS = 18
    IQ1_S = 19
    IQ4_NL = 20
    IQ3_S = 21
    IQ2_S = 22
    IQ4_XS = 23
    I8 = 24
    I16 = 25
    I32 = 26
    I64 = 27
    F64 = 28
    IQ1_M = 29
    BF16 = 30
    TQ1_0 = 34
    TQ2_0 = 35
    MXFP4 = 39
    NVFP4 = 40
    Q1_0 = 41
    Q2_0 = 42

    @property
    def block(self) -> int:
        """Weights in a block."""
        return _SIZES[self][0]

    @property
    def n_bytes(self) -> int:
        """Bytes of a block."""
        return _SIZES[self][1]

    @property
    def bits_per_weight(self) -> float:
        """Scales included.

        >>> GGMLType.Q4_0.bits_per_weight, GGMLType.Q8_0.bits_per_weight, GGMLType.Q4_K.bits_per_weight
        (4.5, 8.5, 4.5)
        """
        return 8 * self.n_bytes / self.block

    @property
    def description(self) -> str:
        """What the bytes of a tensor hold, in their order."""
        if self.block == 1:
            return f"the values, {self.name}: {self.n_bytes} bytes each"
        layout = f": {LAYOUTS[self]}" if self in LAYOUTS else ""
        return f"{self.name}, blocks of {self.block} weights in {self.n_bytes} bytes{layout}"

    @property
    def quantized(self) -> bool:
        """Whether weights share a scale: ggml's ``is_quantized``, which it says of every type with blocks."""
        return self.block > 1

    def bytes_of(self, shape: tuple[int, ...]) -> int:
        """The bytes of a tensor whose last dimension is the row (numpy's order); a scalar is a row of one.

        Raises ``QuantizationError`` if a row is no whole number of blocks.

        >>> GGMLType.Q4_0.bytes_of((3, 64)), GGMLType.Q8_0.bytes_of((64,)), GGMLType.F32.bytes_of(())
        (108, 68, 4)
        """
        width = shape[-1] if shape else 1
        if width % self.block:
            raise QuantizationError(
                f"{self.name} stores rows of a multiple of {self.block} weights, found {width}; store it as F16 or F32"
            )
        return math.prod(shape[:-1]) * (width // self.block) * self.n_bytes


_SIZES = {  # type -> (weights, bytes) of a block
    GGMLType.F32: (1, 4),
    GGMLType.F16: (1, 2),
    GGMLType.Q4_0: (32, 2 + 16),
    GGMLType.Q4_1: (32, 2 + 2 + 16),
    GGMLType.Q5_0: (32, 2 + 4 + 16),
    GGMLType.Q5_1: (32, 2 + 2 + 4 + 16),
    GGMLType.Q8_0: (32, 2 + 32),
    GGMLType.Q8_1: (32, 2 + 2 + 32),  # as in ggml's C; the gguf package says 40. It never occurs in a file
    GGMLType.Q2_K: (256, 16 + 64 + 2 + 2),
    GGMLType.Q3_K: (256, 32 + 64 + 12 + 2),
    GGMLType.Q4_K: (256, 2 + 2 + 12 + 128),
    GGMLType.Q5_K: (256, 2 + 2 + 12 + 32 + 128),
    GGMLType.Q6_K: (256, 128 + 64 + 16 + 2),
    GGMLType.Q8_K: (256, 4 + 256 + 32),
    GGMLType.IQ2_XXS: (256, 66),
    GGMLType.IQ2_XS: (256, 74),
    GGMLType.IQ3_XXS: (256, 98),
    GGMLType.IQ1_S: (256, 50),
    GGMLType.IQ4_NL: (32, 18),
    GGMLType.IQ3_S: (256, 110),
    GGMLType.IQ2_S: (256, 82),
    GGMLType.IQ4_XS: (256, 136),
    GGMLType.I8: (1, 1),
    GGMLType.I16: (1, 2),
    GGMLType.I32: (1, 4),
    GGMLType.I64: (1, 8),
    GGMLType.F64: (1, 8),
    GGMLType.IQ1_M: (256, 56),
    GGMLType.BF16: (1, 2),
    GGMLType.TQ1_0: (256, 54),
    GGMLType.TQ2_0: (256, 66),
    GGMLType.MXFP4: (32, 17),
    GGMLType.NVFP4: (64, 36),
    GGMLType.Q1_0: (128, 18),
    GGMLType.Q2_0: (64, 18),
}

LAYOUTS: dict[GGMLType, str] = {}  # what a block holds; each codec adds its own as it registers
