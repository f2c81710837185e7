"""The exercise ``imports_of``."""

from .scan import IMPORTS_OF as EXERCISE

__all__ = ["EXERCISE"]
