"""The exercises of lab 07: the reader (the assignment's Block B)."""

from __future__ import annotations

from .lab07_bounds import CHECK_BOUNDS
from .lab07_descriptor import PARSE_DESCRIPTOR
from .lab07_file import READ_FILE
from .lab07_header import PARSE_HEADER
from .lab07_metadata import PARSE_METADATA
from .lab07_nibbles import UNPACK_INT4
from .lab07_tensors import DEQUANTIZE_Q4, DEQUANTIZE_Q8

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
