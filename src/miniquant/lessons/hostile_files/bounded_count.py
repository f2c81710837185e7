"""The exercise ``bounded_count``."""

from .numbers import BOUNDED_COUNT as EXERCISE

__all__ = ["EXERCISE"]
