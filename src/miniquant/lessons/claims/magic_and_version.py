"""The exercise ``magic_and_version``."""

from .exercises import MAGIC_AND_VERSION as EXERCISE

__all__ = ["EXERCISE"]
