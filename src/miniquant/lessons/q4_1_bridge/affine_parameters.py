"""The exercise ``affine_parameters``."""

from .zero import AFFINE_PARAMETERS as EXERCISE

__all__ = ["EXERCISE"]
