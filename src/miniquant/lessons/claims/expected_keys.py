"""The exercise ``expected_keys``."""

from .exercises import EXPECTED_KEYS as EXERCISE

__all__ = ["EXERCISE"]
