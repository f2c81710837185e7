"""The exercise ``k_bits``."""

from .design import K_BITS as EXERCISE

__all__ = ["EXERCISE"]
