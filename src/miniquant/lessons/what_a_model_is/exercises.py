"""The exercises of lab 01: what a model is, from one neuron to the memory of MiniGPT."""

from __future__ import annotations

from .memory import KEPT_BYTES
from .neuron import PREDICT_JARS, RMSE
from .training import GRADIENT_DESCENT, GRADIENTS

EXERCISES = [PREDICT_JARS, RMSE, GRADIENTS, GRADIENT_DESCENT, KEPT_BYTES]
