"""The exercise ``tensor_bytes``."""

from .exercises import TENSOR_BYTES as EXERCISE

__all__ = ["EXERCISE"]
