"""The exercise ``decode_q4_0``."""

from .q4 import DECODE_Q4_0 as EXERCISE

__all__ = ["EXERCISE"]
