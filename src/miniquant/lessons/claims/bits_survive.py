"""The exercise ``bits_survive``."""

from .exercises import BITS_SURVIVE as EXERCISE

__all__ = ["EXERCISE"]
