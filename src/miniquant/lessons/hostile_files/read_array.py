"""The exercise ``read_array``."""

from .array import READ_ARRAY as EXERCISE

__all__ = ["EXERCISE"]
