"""The exercise ``dequantize_q8``."""

from .tensors import DEQUANTIZE_Q8 as EXERCISE

__all__ = ["EXERCISE"]
