"""The exercise ``metadata_bytes``."""

from .container import METADATA_BYTES as EXERCISE

__all__ = ["EXERCISE"]
