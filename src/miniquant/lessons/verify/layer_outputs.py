"""The exercise ``layer_outputs``."""

from .exercises import LAYER_OUTPUTS as EXERCISE

__all__ = ["EXERCISE"]
