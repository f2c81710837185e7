"""The exercise ``saving_ratio``."""

from .exercises import SAVING_RATIO as EXERCISE

__all__ = ["EXERCISE"]
