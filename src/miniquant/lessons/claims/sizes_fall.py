"""The exercise ``sizes_fall``."""

from .exercises import SIZES_FALL as EXERCISE

__all__ = ["EXERCISE"]
