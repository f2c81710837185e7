"""The exercise ``bump_header``."""

from .file import BUMP_HEADER as EXERCISE

__all__ = ["EXERCISE"]
