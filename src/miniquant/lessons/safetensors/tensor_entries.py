"""The exercise ``tensor_entries``."""

from .writer import TENSOR_ENTRIES as EXERCISE

__all__ = ["EXERCISE"]
