"""The exercise ``decode_q4_1``."""

from .blocks import DECODE_Q4_1 as EXERCISE

__all__ = ["EXERCISE"]
