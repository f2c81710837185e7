"""The exercise ``channel_scales``."""

from .channel import CHANNEL_SCALES as EXERCISE

__all__ = ["EXERCISE"]
