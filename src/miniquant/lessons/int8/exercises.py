"""The exercises of lab 04: INT8, per tensor and per channel."""

from __future__ import annotations

from .channel import CHANNEL_SCALES, DEQUANTIZE_PER_CHANNEL, QUANTIZE_PER_CHANNEL
from .scale import ABSMAX_SCALE, ROUND_SCALE
from .tensor import QUANTIZE_PER_TENSOR

EXERCISES = [
    ABSMAX_SCALE,
    ROUND_SCALE,
    QUANTIZE_PER_TENSOR,
    CHANNEL_SCALES,
    QUANTIZE_PER_CHANNEL,
    DEQUANTIZE_PER_CHANNEL,
]
