"""The exercise ``parse_metadata``."""

from .metadata import PARSE_METADATA as EXERCISE

__all__ = ["EXERCISE"]
