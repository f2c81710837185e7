"""The exercise ``tensor_errors``."""

from .exercises import TENSOR_ERRORS as EXERCISE

__all__ = ["EXERCISE"]
