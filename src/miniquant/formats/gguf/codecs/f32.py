"""F32: a weight is a float32. There is nothing to encode or decode."""

from __future__ import annotations

from ..types import GGMLType
from .codec import BlockField, Codec


class F32(Codec):
    """Four bytes a weight."""

    dtype = GGMLType.F32
    file_type = 0
    description = "a float32, little-endian"
    fields = (BlockField("value", 4, "values", "a weight, float32", "<f"),)
    identity = True
