"""The exercise ``ties_apart``."""

from .zero import TIES_APART as EXERCISE

__all__ = ["EXERCISE"]
