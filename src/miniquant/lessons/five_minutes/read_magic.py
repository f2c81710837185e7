"""The exercise ``read_magic``."""

from .exercises import READ_MAGIC as EXERCISE

__all__ = ["EXERCISE"]
