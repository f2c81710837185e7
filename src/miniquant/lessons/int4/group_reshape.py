"""The exercise ``group_reshape``."""

from .shape import GROUP_RESHAPE as EXERCISE

__all__ = ["EXERCISE"]
