"""SmoothQuant: share the difficulty between activations and weights, so that both can be rounded to eight bits.

Weights are easy to round to eight bits, and activations are too, unless a few channels are many times larger than the
rest and set the scale of the whole token. Dividing those channels and multiplying their columns of weights moves the
difficulty to where there is room for it: ``s = max(abs(x))^a / max(abs(w))^(1 - a)``, with a = 0.5 half of it.

Source: SmoothQuant, https://arxiv.org/abs/2211.10438, equation 4.
"""

from __future__ import annotations

import copy

import numpy as np

from ..core.errors import QuantizationError
from ..models.quantizer import freeze, quantize_linear_layers
from ..quantization.config import Config, QuantizationConfig
from ..quantization.grids import GRID_RULES
from ..quantization.spec import Dtype, QuantizationSpec, ScaleType
from .blocks import outside_blocks
from .inputs import Model, calibration_walk, get_weight

STRENGTH = 0.5


def smoothquant(
    model: Model, tokens: np.ndarray | None = None, strength: float = STRENGTH, *, progress: bool | None = None
) -> Model:
    """A copy of the model that computes the same, with the channels of its activations nearer to each other in size.

    model: a MiniGPT, or a Llama or Qwen2 of transformers. tokens: (n, length) int64, from the training text by default;
    for a model of transformers there is no default. strength: 0 leaves the difficulty to the activations, 1 gives all
    of it to the weights. ``progress=None`` shows a bar on a terminal only.

    Raises ``QuantizationError`` for tokens that are no windows, or a strength that is not from 0 to 1.
    """
    if not 0 <= strength <= 1:
        raise QuantizationError(f"the migration strength is from 0 to 1, not {strength}; 0.5 shares alike")
    twin, walk = calibration_walk(model, tokens, "SmoothQuant", progress)
    for layers, seen, fold in walk:
        if fold:
            columns = np.stack([np.abs(get_weight(linear)).max(axis=0) for linear in layers.values()]).max(axis=0)
            fold(smooth_scale(fold.largest(seen.largest), fold.largest(columns)[None], strength))
    return twin


def smooth_scale(largest: np.ndarray, w: np.ndarray, strength: float = STRENGTH) -> np.ndarray:
    """What each channel is divided by: ``max(abs(x))^strength / max(abs(w))^(1 - strength)``.

    largest: (in,) the largest abs(x), w: (out, in)   ->   (in,) float32; 1 where either is 0

    >>> smooth_scale(np.array([16.0, 0.0]), np.array([[-1.0, 2.0], [0.25, 1.0]])).tolist()
    [4.0, 1.0]
    """
    columns = np.abs(w).max(axis=0).astype(np.float64)  # (in,)
    dead = (largest == 0) | (columns == 0)
    scale = np.where(dead, 1, largest) ** strength / np.where(dead, 1, columns) ** (1 - strength)
    return scale.astype(np.float32)


def w8a8(model: Model) -> Model:
    """A copy that rounds to eight bits what a linear layer multiplies: weights per row, activations per token.

    Fake quantization: the numbers are those of the integers, the arithmetic is float32. Activations are rounded as they
    come, each token with a scale of its own, so no calibration is needed for them. A Llama's head stays float.
    """
    tokens = QuantizationSpec(Dtype.int8, scale_type=ScaleType.float32, is_dynamic=True)
    config = Config(QuantizationConfig(GRID_RULES["int8"], input_tensors=tokens), exclude=outside_blocks(model))
    return freeze(quantize_linear_layers(copy.deepcopy(model), config))
