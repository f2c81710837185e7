"""The exercise ``tensor_offsets``."""

from .plan import TENSOR_OFFSETS as EXERCISE

__all__ = ["EXERCISE"]
