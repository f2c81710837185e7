"""The exercise ``gguf_header``."""

from .container import GGUF_HEADER as EXERCISE

__all__ = ["EXERCISE"]
