"""The exercise ``max_abs_error``."""

from .exercises import MAX_ABS_ERROR as EXERCISE

__all__ = ["EXERCISE"]
