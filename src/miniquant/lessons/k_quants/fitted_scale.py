"""The exercise ``fitted_scale``."""

from .design import FITTED_SCALE as EXERCISE

__all__ = ["EXERCISE"]
