"""The exercise ``encode_q8_0``."""

from .q8 import ENCODE_Q8_0 as EXERCISE

__all__ = ["EXERCISE"]
