"""The exercise ``awq_scales``."""

from .awq import AWQ_SCALES as EXERCISE

__all__ = ["EXERCISE"]
