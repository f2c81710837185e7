"""The exercise ``ungroup``."""

from .shape import UNGROUP as EXERCISE

__all__ = ["EXERCISE"]
