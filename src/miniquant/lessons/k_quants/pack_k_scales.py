"""The exercise ``pack_k_scales``."""

from .scales import PACK_K_SCALES as EXERCISE

__all__ = ["EXERCISE"]
