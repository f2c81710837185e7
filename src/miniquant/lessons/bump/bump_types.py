"""The exercise ``bump_types``."""

from .file import BUMP_TYPES as EXERCISE

__all__ = ["EXERCISE"]
