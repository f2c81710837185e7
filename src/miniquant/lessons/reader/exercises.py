"""The exercises of lab 07: the reader (the assignment's Block B)."""

from __future__ import annotations

from .bounds import CHECK_BOUNDS
from .descriptor import PARSE_DESCRIPTOR
from .file import READ_FILE
from .metadata import PARSE_METADATA
from .nibbles import UNPACK_INT4
from .parse_header import EXERCISE as PARSE_HEADER
from .tensors import DEQUANTIZE_Q4, DEQUANTIZE_Q8

EXERCISES = [
    PARSE_HEADER,
    PARSE_METADATA,
    PARSE_DESCRIPTOR,
    CHECK_BOUNDS,
    DEQUANTIZE_Q8,
    UNPACK_INT4,
    DEQUANTIZE_Q4,
    READ_FILE,
]
