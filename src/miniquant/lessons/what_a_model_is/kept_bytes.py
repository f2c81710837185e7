"""The exercise ``kept_bytes``."""

from .memory import KEPT_BYTES as EXERCISE

__all__ = ["EXERCISE"]
