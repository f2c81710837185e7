"""The exercise ``byte_order``."""

from .exercises import BYTE_ORDER as EXERCISE

__all__ = ["EXERCISE"]
