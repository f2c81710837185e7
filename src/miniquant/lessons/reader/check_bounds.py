"""The exercise ``check_bounds``."""

from .bounds import CHECK_BOUNDS as EXERCISE

__all__ = ["EXERCISE"]
