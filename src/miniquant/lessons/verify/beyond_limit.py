"""The exercise ``beyond_limit``."""

from .exercises import BEYOND_LIMIT as EXERCISE

__all__ = ["EXERCISE"]
