"""The exercise ``unpack_k_scales``."""

from .scales import UNPACK_K_SCALES as EXERCISE

__all__ = ["EXERCISE"]
