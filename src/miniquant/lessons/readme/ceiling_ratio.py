"""The exercise ``ceiling_ratio``."""

from .exercises import CEILING_RATIO as EXERCISE

__all__ = ["EXERCISE"]
