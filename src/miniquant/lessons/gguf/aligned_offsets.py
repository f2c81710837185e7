"""The exercise ``aligned_offsets``."""

from .tensors import ALIGNED_OFFSETS as EXERCISE

__all__ = ["EXERCISE"]
