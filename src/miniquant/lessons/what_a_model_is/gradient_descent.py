"""The exercise ``gradient_descent``."""

from .training import GRADIENT_DESCENT as EXERCISE

__all__ = ["EXERCISE"]
