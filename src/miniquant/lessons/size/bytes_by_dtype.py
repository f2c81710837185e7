"""The exercise ``bytes_by_dtype``."""

from .exercises import BYTES_BY_DTYPE as EXERCISE

__all__ = ["EXERCISE"]
