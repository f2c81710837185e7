"""The exercise ``encode_q4_0``."""

from .q4 import ENCODE_Q4_0 as EXERCISE

__all__ = ["EXERCISE"]
