"""The exercise ``late_rounding_error``."""

from .exercises import LATE_ROUNDING_ERROR as EXERCISE

__all__ = ["EXERCISE"]
