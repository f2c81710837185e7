"""The exercise ``effective_bits``."""

from .exercises import EFFECTIVE_BITS as EXERCISE

__all__ = ["EXERCISE"]
