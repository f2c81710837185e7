"""The exercises of lab 17: hostile files."""

from __future__ import annotations

from .array import READ_ARRAY
from .numbers import BOUNDED_COUNT, FITS_INSIDE, TENSOR_SIZE
from .parts import DATA_START, READ_DIMS
from .text import SAFE_STRING, TENSOR_FILE

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
