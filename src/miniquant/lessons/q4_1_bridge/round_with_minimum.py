"""The exercise ``round_with_minimum``."""

from .minimum import ROUND_WITH_MINIMUM as EXERCISE

__all__ = ["EXERCISE"]
