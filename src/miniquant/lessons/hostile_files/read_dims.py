"""The exercise ``read_dims``."""

from .parts import READ_DIMS as EXERCISE

__all__ = ["EXERCISE"]
