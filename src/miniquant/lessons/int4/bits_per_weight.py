"""The exercise ``bits_per_weight``."""

from .scale import BITS_PER_WEIGHT as EXERCISE

__all__ = ["EXERCISE"]
