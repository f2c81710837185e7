"""The exercise ``decode_q6_k``."""

from .q6k import DECODE_Q6_K as EXERCISE

__all__ = ["EXERCISE"]
