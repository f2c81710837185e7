"""The exercise ``smooth_scales``."""

from .smooth import SMOOTH_SCALES as EXERCISE

__all__ = ["EXERCISE"]
