"""The exercises of lab 06: the writer (the assignment's Block A)."""

from __future__ import annotations

from .lab06_container import HEADER_BYTES, METADATA_BYTES
from .lab06_descriptor import DESCRIPTOR_BYTES
from .lab06_file import WRITE_FILE
from .lab06_nibbles import PACK_INT4
from .lab06_plan import CHOOSE_DTYPES, TENSOR_OFFSETS
from .lab06_q4 import ENCODE_Q4
from .lab06_q8 import ENCODE_Q8

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
