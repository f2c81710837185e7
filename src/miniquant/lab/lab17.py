"""The exercises of lab 17: hostile files."""

from __future__ import annotations

from .lab17_array import READ_ARRAY
from .lab17_numbers import BOUNDED_COUNT, FITS_INSIDE, TENSOR_SIZE
from .lab17_parts import DATA_START, READ_DIMS
from .lab17_text import SAFE_STRING, TENSOR_FILE

EXERCISES = [
    BOUNDED_COUNT,
    SAFE_STRING,
    READ_ARRAY,
    READ_DIMS,
    TENSOR_SIZE,
    FITS_INSIDE,
    DATA_START,
    TENSOR_FILE,
]
