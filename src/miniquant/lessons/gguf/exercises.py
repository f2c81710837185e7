"""The exercises of lab 11: real GGUF v3 (the assignment's stretch goal)."""

from __future__ import annotations

from .container import GGUF_HEADER, GGUF_STRING
from .key_value import KEY_VALUE
from .q4 import DECODE_Q4_0, ENCODE_Q4_0
from .q8 import ENCODE_Q8_0
from .tensors import ALIGNED_OFFSETS, TENSOR_INFO

EXERCISES = [
    GGUF_HEADER,
    GGUF_STRING,
    KEY_VALUE,
    TENSOR_INFO,
    ALIGNED_OFFSETS,
    ENCODE_Q8_0,
    ENCODE_Q4_0,
    DECODE_Q4_0,
]
