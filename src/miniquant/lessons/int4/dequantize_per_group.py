"""The exercise ``dequantize_per_group``."""

from .group import DEQUANTIZE_PER_GROUP as EXERCISE

__all__ = ["EXERCISE"]
