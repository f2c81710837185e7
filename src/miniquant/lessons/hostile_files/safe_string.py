"""The exercise ``safe_string``."""

from .text import SAFE_STRING as EXERCISE

__all__ = ["EXERCISE"]
