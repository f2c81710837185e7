"""The exercise ``where_zero_lands``."""

from .minimum import WHERE_ZERO_LANDS as EXERCISE

__all__ = ["EXERCISE"]
