"""The exercise ``bump_offsets``."""

from .layout import BUMP_OFFSETS as EXERCISE

__all__ = ["EXERCISE"]
