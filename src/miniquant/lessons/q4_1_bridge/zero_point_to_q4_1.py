"""The exercise ``zero_point_to_q4_1``."""

from .blocks import ZERO_POINT_TO_Q4_1 as EXERCISE

__all__ = ["EXERCISE"]
