"""The exercise ``parse_descriptor``."""

from .descriptor import PARSE_DESCRIPTOR as EXERCISE

__all__ = ["EXERCISE"]
