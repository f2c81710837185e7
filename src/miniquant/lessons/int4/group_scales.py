"""The exercise ``group_scales``."""

from .scale import GROUP_SCALES as EXERCISE

__all__ = ["EXERCISE"]
