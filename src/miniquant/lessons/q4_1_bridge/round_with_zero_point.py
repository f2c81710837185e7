"""The exercise ``round_with_zero_point``."""

from .zero import ROUND_WITH_ZERO_POINT as EXERCISE

__all__ = ["EXERCISE"]
