"""The exercises of lab 06: the writer (the assignment's Block A)."""

from __future__ import annotations

from .container import HEADER_BYTES, METADATA_BYTES
from .descriptor import DESCRIPTOR_BYTES
from .file import WRITE_FILE
from .nibbles import PACK_INT4
from .plan import CHOOSE_DTYPES, TENSOR_OFFSETS
from .q4 import ENCODE_Q4
from .q8 import ENCODE_Q8

EXERCISES = [
    HEADER_BYTES,
    METADATA_BYTES,
    CHOOSE_DTYPES,
    TENSOR_OFFSETS,
    DESCRIPTOR_BYTES,
    ENCODE_Q8,
    PACK_INT4,
    ENCODE_Q4,
    WRITE_FILE,
]
