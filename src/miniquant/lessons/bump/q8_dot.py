"""The exercise ``q8_dot``."""

from .dot import Q8_DOT as EXERCISE

__all__ = ["EXERCISE"]
