"""The exercise ``gradients``."""

from .training import GRADIENTS as EXERCISE

__all__ = ["EXERCISE"]
