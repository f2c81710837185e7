"""The exercise ``tensor_size``."""

from .numbers import TENSOR_SIZE as EXERCISE

__all__ = ["EXERCISE"]
