"""The exercise ``what_costs``."""

from .exercises import WHAT_COSTS as EXERCISE

__all__ = ["EXERCISE"]
