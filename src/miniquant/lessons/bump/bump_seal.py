"""The exercise ``bump_seal``."""

from .seal import BUMP_SEAL as EXERCISE

__all__ = ["EXERCISE"]
