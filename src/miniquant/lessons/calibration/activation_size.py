"""The exercise ``activation_size``."""

from .awq import ACTIVATION_SIZE as EXERCISE

__all__ = ["EXERCISE"]
