"""The exercise ``layer_errors``."""

from .exercises import LAYER_ERRORS as EXERCISE

__all__ = ["EXERCISE"]
