"""The exercise ``k_nibbles``."""

from .q4k import K_NIBBLES as EXERCISE

__all__ = ["EXERCISE"]
