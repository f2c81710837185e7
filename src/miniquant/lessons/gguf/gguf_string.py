"""The exercise ``gguf_string``."""

from .container import GGUF_STRING as EXERCISE

__all__ = ["EXERCISE"]
