"""The exercise ``data_start``."""

from .parts import DATA_START as EXERCISE

__all__ = ["EXERCISE"]
