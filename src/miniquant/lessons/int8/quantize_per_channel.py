"""The exercise ``quantize_per_channel``."""

from .channel import QUANTIZE_PER_CHANNEL as EXERCISE

__all__ = ["EXERCISE"]
