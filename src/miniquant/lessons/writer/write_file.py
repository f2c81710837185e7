"""The exercise ``write_file``."""

from .file import WRITE_FILE as EXERCISE

__all__ = ["EXERCISE"]
