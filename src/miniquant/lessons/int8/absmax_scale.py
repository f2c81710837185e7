"""The exercise ``absmax_scale``."""

from .scale import ABSMAX_SCALE as EXERCISE

__all__ = ["EXERCISE"]
