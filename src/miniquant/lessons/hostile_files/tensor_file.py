"""The exercise ``tensor_file``."""

from .text import TENSOR_FILE as EXERCISE

__all__ = ["EXERCISE"]
