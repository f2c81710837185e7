"""The exercises of lab 13: zero point or minimum, the bridge from a quantizer to Q4_1."""

from __future__ import annotations

from .blocks import DECODE_Q4_1, ZERO_POINT_TO_Q4_1
from .minimum import ROUND_WITH_MINIMUM, WHERE_ZERO_LANDS
from .zero import AFFINE_PARAMETERS, ROUND_WITH_ZERO_POINT, TIES_APART

EXERCISES = [
    AFFINE_PARAMETERS,
    ROUND_WITH_ZERO_POINT,
    ROUND_WITH_MINIMUM,
    TIES_APART,
    WHERE_ZERO_LANDS,
    ZERO_POINT_TO_Q4_1,
    DECODE_Q4_1,
]
