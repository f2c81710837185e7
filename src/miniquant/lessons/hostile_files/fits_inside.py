"""The exercise ``fits_inside``."""

from .numbers import FITS_INSIDE as EXERCISE

__all__ = ["EXERCISE"]
