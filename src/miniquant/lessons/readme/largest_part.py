"""The exercise ``largest_part``."""

from .exercises import LARGEST_PART as EXERCISE

__all__ = ["EXERCISE"]
