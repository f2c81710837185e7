"""The exercise ``decode_q4_k``."""

from .q4k import DECODE_Q4_K as EXERCISE

__all__ = ["EXERCISE"]
