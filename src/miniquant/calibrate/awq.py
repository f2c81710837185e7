"""AWQ: make the columns that matter larger before rounding, and the activations smaller by as much.

A column of weights matters as much as the activations that it meets. Rounding has the same step for a whole group, so
a column that is made larger by s is rounded s times more finely, relative to itself; and its group's step grows only if
the column sets the group's range. How far to go is tried out: s is mean(abs(x)) to the power of alpha, and that alpha
wins whose rounded layer moves its output least.

Source: AWQ, https://arxiv.org/abs/2306.00978, section 3.2 and its search over alpha; clipping as in its code.
"""

from __future__ import annotations

import numpy as np

from ..quantization.grids import GridRule
from .inputs import Model, calibration_walk, get_weight, output_error, set_weight
from .rounding import clip_weights, fake_quantize_nearest, rule_named

ALPHAS = tuple(i / 20 for i in range(21))
SMALLEST_MEAN = 1e-4  # of the mean activation: what a channel counts as at least, so that a silent one has a scale too


def awq(
    model: Model,
    tokens: np.ndarray | None = None,
    rule: str | GridRule = "Q4_1",
    *,
    clip: bool = True,
    progress: bool | None = None,
) -> Model:
    """A copy of the model, still in float32, whose weights lose less when they are rounded to the rule's grid.

    model: a MiniGPT, or a Llama or Qwen2 of transformers. tokens: (n, length) int64, from the training text by default;
    for a model of transformers there is no default. With ``clip=False`` it computes what ``model`` computes, for the
    scales are folded into the layers in front; clipping then changes weights on purpose. Layers that read the same
    numbers, as a Llama's q, k and v do, have one scale, and their output error together, for what reaches them on the
    calibration text, is not worse than with plain rounding: alpha 0 is among those tried, and a row that clipping does
    not help is not clipped.
    ``progress=None`` shows a bar on a terminal only.

    Raises ``QuantizationError`` for tokens that are no windows, for what the rule cannot hold, and for another model.
    """
    rule = rule_named(rule)
    twin, walk = calibration_walk(model, tokens, "AWQ", progress)
    for layers, seen, fold in walk:
        hessian = seen.hessian
        if fold:
            together = np.concatenate([get_weight(linear) for linear in layers.values()])  # (sum of out, in)
            scale = search_scale(together, fold.mean(seen.mean), hessian, rule)
            fold(scale)
            hessian = hessian / np.outer(scale, scale)  # of the inputs as they are now
        if clip:
            for linear in layers.values():
                set_weight(linear, clip_weights(get_weight(linear), hessian, rule))
    return twin


def channel_scale(mean: np.ndarray, alpha: float) -> np.ndarray:
    """The scale of each channel for one alpha, normalised so that the largest times the smallest is 1.

    mean: (in,) mean of abs(x)   ->   (in,) float32, all above 0; all 1 for alpha 0

    >>> channel_scale(np.array([4.0, 1.0]), 0.5).round(3).tolist()
    [1.4140000343322754, 0.7070000171661377]
    """
    level = np.maximum(mean, SMALLEST_MEAN * mean.mean()) if mean.any() else np.ones_like(mean)
    scale = level**alpha
    normalised: np.ndarray = scale / np.sqrt(scale.max() * scale.min())
    return normalised.astype(np.float32)


def search_scale(w: np.ndarray, mean: np.ndarray, hessian: np.ndarray, rule: GridRule) -> np.ndarray:
    """The scale whose weights, rounded to nearest and scaled back, move the layer's output least.

    w: (out, in) float32, mean: (in,), hessian: (in, in)   ->   (in,) float32
    """
    tried = [channel_scale(mean, alpha) for alpha in ALPHAS]
    errors = [output_error(fake_quantize_nearest(w * s, rule) / s - w, hessian).sum() for s in tried]
    return tried[int(np.argmin(errors))]
