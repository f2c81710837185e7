"""The exercise ``tensor_info``."""

from .tensors import TENSOR_INFO as EXERCISE

__all__ = ["EXERCISE"]
