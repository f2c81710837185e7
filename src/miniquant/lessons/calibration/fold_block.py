"""The exercise ``fold_block``."""

from .fold import FOLD_BLOCK as EXERCISE

__all__ = ["EXERCISE"]
