"""The exercise ``quantize_per_group``."""

from .group import QUANTIZE_PER_GROUP as EXERCISE

__all__ = ["EXERCISE"]
