"""The exercise ``rmse``."""

from .neuron import RMSE as EXERCISE

__all__ = ["EXERCISE"]
