"""The exercise ``magic_bytes``."""

from .exercises import MAGIC_BYTES as EXERCISE

__all__ = ["EXERCISE"]
