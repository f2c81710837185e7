"""The exercise ``read_file``."""

from .file import READ_FILE as EXERCISE

__all__ = ["EXERCISE"]
