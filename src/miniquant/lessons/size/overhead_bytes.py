"""The exercise ``overhead_bytes``."""

from .exercises import OVERHEAD_BYTES as EXERCISE

__all__ = ["EXERCISE"]
