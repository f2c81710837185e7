"""Q4_0: 32 nibbles and a scale; the weight of largest magnitude becomes -8, and the scale has the sign for that."""

from __future__ import annotations

from ..types import GGMLType
from .common import NIBBLES, SCALE
from .small_blocks import AroundZero


class Q4_0(AroundZero):
    """4.5 bits a weight."""

    dtype = GGMLType.Q4_0
    file_type = 2
    description = (
        "a float16 scale d, then 16 bytes; byte j holds weight j in its low half and weight j + 16 in its high half; "
        "each weight is d × (q - 8)"
    )
    fields = (SCALE, NIBBLES)
    levels = (-8, 7)
