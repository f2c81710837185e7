"""The exercise ``flatten_optimizer``."""

from .checkpoint import FLATTEN_OPTIMIZER as EXERCISE

__all__ = ["EXERCISE"]
