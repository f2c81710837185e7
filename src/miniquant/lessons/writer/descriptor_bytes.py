"""The exercise ``descriptor_bytes``."""

from .descriptor import DESCRIPTOR_BYTES as EXERCISE

__all__ = ["EXERCISE"]
