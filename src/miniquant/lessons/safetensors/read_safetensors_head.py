"""The exercise ``read_safetensors_head``."""

from .reader import READ_SAFETENSORS_HEAD as EXERCISE

__all__ = ["EXERCISE"]
