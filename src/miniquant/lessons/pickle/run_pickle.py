"""The exercise ``run_pickle``."""

from .machine import RUN_PICKLE as EXERCISE

__all__ = ["EXERCISE"]
