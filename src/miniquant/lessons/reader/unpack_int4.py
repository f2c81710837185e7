"""The exercise ``unpack_int4``."""

from .nibbles import UNPACK_INT4 as EXERCISE

__all__ = ["EXERCISE"]
