"""The exercise ``search_clip``."""

from .awq import SEARCH_CLIP as EXERCISE

__all__ = ["EXERCISE"]
