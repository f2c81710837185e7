"""The exercises of lab 15: K-quants, from one super-block by hand to a whole file."""

from __future__ import annotations

from .design import FITTED_SCALE, K_BITS
from .q4k import DECODE_Q4_K, K_NIBBLES, SPLIT_SUPER_BLOCK
from .q6k import DECODE_Q6_K
from .scales import PACK_K_SCALES, UNPACK_K_SCALES

EXERCISES = [
    K_BITS,
    SPLIT_SUPER_BLOCK,
    UNPACK_K_SCALES,
    PACK_K_SCALES,
    K_NIBBLES,
    DECODE_Q4_K,
    DECODE_Q6_K,
    FITTED_SCALE,
]
