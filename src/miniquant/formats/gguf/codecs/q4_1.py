"""Q4_1: 32 nibbles, a scale, and a min, which the smallest weight is."""

from __future__ import annotations

from ..types import GGMLType
from .common import MIN, NIBBLES, SCALE
from .small_blocks import AboveMin


class Q4_1(AboveMin):
    """5 bits a weight."""

    dtype = GGMLType.Q4_1
    file_type = 3
    description = "a float16 scale d, a float16 min m, then 16 bytes of nibbles as in Q4_0; each weight is d × q + m"
    fields = (SCALE, MIN, NIBBLES)
    levels = (0, 15)
