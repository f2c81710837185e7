"""The exercises of lab 05: INT4 per group, fake quantization, and why the scale is rounded first."""

from __future__ import annotations

from .group import DEQUANTIZE_PER_GROUP, QUANTIZE_PER_GROUP
from .scale import BITS_PER_WEIGHT, GROUP_SCALES
from .shape import GROUP_RESHAPE, UNGROUP

EXERCISES = [
    GROUP_RESHAPE,
    UNGROUP,
    BITS_PER_WEIGHT,
    GROUP_SCALES,
    QUANTIZE_PER_GROUP,
    DEQUANTIZE_PER_GROUP,
]
