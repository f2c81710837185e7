"""The exercise ``dequantize_per_channel``."""

from .channel import DEQUANTIZE_PER_CHANNEL as EXERCISE

__all__ = ["EXERCISE"]
