"""The exercise ``round_scale``."""

from .scale import ROUND_SCALE as EXERCISE

__all__ = ["EXERCISE"]
