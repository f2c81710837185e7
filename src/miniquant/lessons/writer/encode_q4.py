"""The exercise ``encode_q4``."""

from .q4 import ENCODE_Q4 as EXERCISE

__all__ = ["EXERCISE"]
