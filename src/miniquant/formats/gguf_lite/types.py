"""GGUF-lite, version 1: what stands where in the assignment's container. Little-endian throughout.

1. header       <4I  magic, version, n_tensors, metadata_len
2. metadata     metadata_len bytes of UTF-8, key=value lines joined by newlines
3. descriptors  n_tensors times:  <H name_len, name,  <B n_dims,  <{n}I dims (out first),  <B dtype,  <Q offset
4. data         the tensors; an offset counts from the first byte after the last descriptor
"""

from __future__ import annotations

import math
import struct
from enum import IntEnum

from ...quantization.schemes import GROUP_SIZE, SCHEMES

MAGIC = 0x474C4654  # "GLFT" read as a number; little-endian, its bytes on disk are 54 46 4C 47: "TFLG"
VERSION = 1
HEADER = struct.Struct("<4I")
SMALLEST_DESCRIPTOR = 2 + 1 + 1 + 0 + 1 + 8  # a name of one byte and no dims
MAX_DIMS = 64  # the most that a numpy array can have
MUST_SAY = {"dims_order": "out,in", "group_size": str(GROUP_SIZE)}  # metadata that may be missing, but not different
MAX_CELLS = 2**60  # bound on the product of nonzero dims


class DType(IntEnum):
    """The dtype byte of a descriptor."""

    F32 = 0
    F16 = 1
    Q8_PER_CHANNEL = 2  # scales: out × f16, then values: out × in × i8
    Q4_PER_GROUP_64 = 3  # scales: out × (in / 64) × f16, then values: out × in / 2 bytes, low nibble first

    @property
    def scheme(self) -> str:
        """The name of this dtype in a ``schemes`` dict."""
        return SCHEMES[self]

    @property
    def block(self) -> int:
        """A row's length is a multiple of it."""
        return GROUP_SIZE if self == DType.Q4_PER_GROUP_64 else 1

    @property
    def description(self) -> str:
        """What the bytes of a tensor hold, in their order."""
        return _DESCRIPTIONS[self]

    def scale_shape(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """The shape of a tensor's scales; ``None`` for types without any.

        >>> DType.Q8_PER_CHANNEL.scale_shape((4, 128)), DType.Q4_PER_GROUP_64.scale_shape((4, 128))
        ((4,), (4, 2))
        """
        if self == DType.Q8_PER_CHANNEL:
            return shape[:1]
        return (shape[0], shape[1] // GROUP_SIZE) if self == DType.Q4_PER_GROUP_64 else None

    def scale_bytes(self, shape: tuple[int, ...]) -> int:
        """The bytes of a tensor's float16 scales; 0 for types without any.

        >>> DType.Q8_PER_CHANNEL.scale_bytes((4, 64)), DType.Q4_PER_GROUP_64.scale_bytes((4, 128))
        (8, 16)
        """
        scales = self.scale_shape(shape)
        return 0 if scales is None else 2 * math.prod(scales)

    def bytes_of(self, shape: tuple[int, ...]) -> int:
        """The bytes of a tensor in the data section, scales included.

        >>> [dtype.bytes_of((4, 64)) for dtype in DType], DType.F32.bytes_of(())
        ([1024, 512, 264, 136], 4)
        """
        return self.scale_bytes(shape) + math.prod(shape) * _VALUE_BITS[self] // 8


_VALUE_BITS = {DType.F32: 32, DType.F16: 16, DType.Q8_PER_CHANNEL: 8, DType.Q4_PER_GROUP_64: 4}
_DESCRIPTIONS = {
    DType.F32: "the weights, float32",
    DType.F16: "the weights, float16",
    DType.Q8_PER_CHANNEL: "a float16 scale for each row, then 8-bit integers; times its row's scale, each is a weight",
    DType.Q4_PER_GROUP_64: f"a float16 scale for each group of {GROUP_SIZE} in a row, then 4-bit integers, two a byte, "
    "low nibble first; times its group's scale, each is a weight",
}


def n_cells(shape: tuple[int, ...]) -> int:
    """The product of the nonzero dims: with a 0 among them, the others may still be too large."""
    return math.prod(dim for dim in shape if dim)
