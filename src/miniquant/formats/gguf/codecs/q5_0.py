"""Q5_0: 32 integers of 5 bits and a scale; the weight of largest magnitude becomes -16.

The fifth bits stand apart: 32 of them fill four bytes, and what is left of each integer is a nibble.
"""

from __future__ import annotations

from ..types import GGMLType
from .common import FIFTH_BITS, NIBBLES, SCALE
from .small_blocks import AroundZero


class Q5_0(AroundZero):
    """5.5 bits a weight."""

    dtype = GGMLType.Q5_0
    file_type = 8
    description = (
        "a float16 scale d, then 4 bytes whose 32 bits are the fifth bits of the weights, in order; then 16 bytes of "
        "nibbles as in Q4_0; each weight is d × (q - 16)"
    )
    fields = (SCALE, FIFTH_BITS, NIBBLES)
    levels = (-16, 15)
