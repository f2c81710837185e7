"""The exercise ``header_bytes``."""

from .container import HEADER_BYTES as EXERCISE

__all__ = ["EXERCISE"]
