"""The exercise ``names_in_order``."""

from .exercises import NAMES_IN_ORDER as EXERCISE

__all__ = ["EXERCISE"]
