"""The exercise ``pack_int4``."""

from .nibbles import PACK_INT4 as EXERCISE

__all__ = ["EXERCISE"]
