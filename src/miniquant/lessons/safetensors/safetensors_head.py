"""The exercise ``safetensors_head``."""

from .writer import SAFETENSORS_HEAD as EXERCISE

__all__ = ["EXERCISE"]
