"""The exercise ``fold_into_norm``."""

from .fold import FOLD_INTO_NORM as EXERCISE

__all__ = ["EXERCISE"]
