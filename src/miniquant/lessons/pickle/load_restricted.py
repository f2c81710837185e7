"""The exercise ``load_restricted``."""

from .payload import LOAD_RESTRICTED as EXERCISE

__all__ = ["EXERCISE"]
