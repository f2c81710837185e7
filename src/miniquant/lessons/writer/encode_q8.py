"""The exercise ``encode_q8``."""

from .q8 import ENCODE_Q8 as EXERCISE

__all__ = ["EXERCISE"]
