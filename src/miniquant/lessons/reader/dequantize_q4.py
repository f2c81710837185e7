"""The exercise ``dequantize_q4``."""

from .tensors import DEQUANTIZE_Q4 as EXERCISE

__all__ = ["EXERCISE"]
