"""Plant activation outliers in a model without changing what it computes.

In large language models a few channels carry activations many times larger than the rest, which is what AWQ and
SmoothQuant were made for. A model as small as MiniGPT has none, so here they are planted, and everything that is
measured on such a model says so. The trick is a fold backwards: gain and bias of some channels of a LayerNorm times a
factor, the columns of the next layer divided by it. With a power of two as factor nothing is rounded, and the logits of
the float model stay the same, bit for bit.

Source: LLM.int8(), https://arxiv.org/abs/2208.07339, section 4, on where real models have them.
"""

from __future__ import annotations

import copy

import numpy as np

from ..core.errors import QuantizationError
from .blocks import blocks_of
from .folding import fold_into_norm
from .inputs import Model

CHANNELS, FACTOR = 5, 32.0


def plant_outliers(model: Model, channels: int = CHANNELS, factor: float = FACTOR, seed: int = 0) -> Model:
    """A copy of the model with planted outliers: ``channels`` channels of every block's norms times ``factor``.

    Raises ``QuantizationError`` for more channels than there are, or a factor that is not above 0.
    """
    twin, random = copy.deepcopy(model), np.random.default_rng(seed)
    for half in blocks_of(twin).halves:
        width = len(next(iter(half.entering.values())).weight[0])
        if not 0 <= channels <= width or not 0 < factor < np.inf:
            raise QuantizationError(f"{channels} of {width} channels times {factor:g} is nothing to plant")
        scale = np.ones(width)
        scale[random.choice(width, channels, replace=False)] = 1 / factor  # dividing by it makes them larger
        fold_into_norm(half.norm, half.entering.values(), scale)
    return twin.eval()
