"""The exercise ``choose_dtypes``."""

from .plan import CHOOSE_DTYPES as EXERCISE

__all__ = ["EXERCISE"]
