"""The exercise ``quantize_per_tensor``."""

from .tensor import QUANTIZE_PER_TENSOR as EXERCISE

__all__ = ["EXERCISE"]
