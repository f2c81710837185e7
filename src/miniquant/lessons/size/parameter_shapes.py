"""The exercise ``parameter_shapes``."""

from .exercises import PARAMETER_SHAPES as EXERCISE

__all__ = ["EXERCISE"]
