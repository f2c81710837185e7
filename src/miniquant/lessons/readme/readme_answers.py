"""The exercise ``readme_answers``."""

from .exercises import README_ANSWERS as EXERCISE

__all__ = ["EXERCISE"]
