"""The exercise ``split_super_block``."""

from .q4k import SPLIT_SUPER_BLOCK as EXERCISE

__all__ = ["EXERCISE"]
