"""Q5_1: 32 integers of 5 bits, a scale, and a min, which the smallest weight is."""

from __future__ import annotations

from ..types import GGMLType
from .common import FIFTH_BITS, MIN, NIBBLES, SCALE
from .small_blocks import AboveMin


class Q5_1(AboveMin):
    """6 bits a weight."""

    dtype = GGMLType.Q5_1
    file_type = 9
    description = (
        "a float16 scale d, a float16 min m, then 4 bytes of fifth bits and 16 bytes of nibbles as in Q5_0; each "
        "weight is d × q + m"
    )
    fields = (SCALE, MIN, FIFTH_BITS, NIBBLES)
    levels = (0, 31)
