"""The exercise ``bump_order``."""

from .layout import BUMP_ORDER as EXERCISE

__all__ = ["EXERCISE"]
