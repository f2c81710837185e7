"""The exercise ``check_layout``."""

from .reader import CHECK_LAYOUT as EXERCISE

__all__ = ["EXERCISE"]
