"""The exercise ``predict_jars``."""

from .neuron import PREDICT_JARS as EXERCISE

__all__ = ["EXERCISE"]
