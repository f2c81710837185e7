"""Models whose linear layers lie on a grid, rounded to nearest or with integers that were chosen otherwise.

Also the search for a better grid: pull in the ends of a group where the rest of it gains more than its ends lose.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np
from torch import nn

from ..core.errors import QuantizationError, SchemeError
from ..models.quantizer import QuantizedLinear, freeze, quantize_linear_layers
from ..quantization.config import Config, QuantizationConfig
from ..quantization.grids import GRID_RULES, GridRule, QuantizedMatrix, dequantize, quantize
from .blocks import outside_blocks
from .inputs import Model, output_error

RATIOS = tuple(1 - i / 20 for i in range(11))  # 1, 0.95 … 0.5: how much of a group's range the clip search keeps


def rule_named(rule: str | GridRule) -> GridRule:
    """A rule by its name. Raises ``QuantizationError`` for a name that there is not.

    >>> rule_named("Q4_1").group_size
    32
    """
    if not isinstance(rule, str):
        return rule
    if rule not in GRID_RULES:
        raise QuantizationError(f"no grid rule {rule!r}; there are {', '.join(GRID_RULES)}")
    return GRID_RULES[rule]


def quantize_nearest(w: np.ndarray, rule: GridRule) -> QuantizedMatrix:
    """Round to nearest on the rule's own grid: (out, in) float32."""
    grid = rule.fit(w)
    return QuantizedMatrix(quantize(w, grid), grid)


def fake_quantize_nearest(w: np.ndarray, rule: GridRule) -> np.ndarray:
    """The weights that rounding to nearest leaves: (out, in) float32   ->   the same shape."""
    return dequantize(*quantize_nearest(w, rule))


def round_to_nearest(model: Model, rule: str | GridRule = "Q4_1") -> Model:
    """A frozen copy with every linear layer of the blocks rounded to nearest; all else stays as it is, the head too.

    Raises ``QuantizationError`` for a rule that does not exist or that cannot hold the weights, and for another model
    than a MiniGPT, a Llama or a Qwen2.
    """
    config = Config(QuantizationConfig(rule_named(rule)), exclude=outside_blocks(model))
    return freeze(quantize_linear_layers(copy.deepcopy(model), config))


def with_quantized_layers(model: Model, chosen: Mapping[str, QuantizedMatrix], rule: GridRule) -> Model:
    """A frozen copy whose linear layers hold these integers on these grids, by the name of the layer.

    Nothing is rounded here, and a ``ModelExporter`` writes the integers as they are.
    """
    twin = copy.deepcopy(model).eval()
    for name, quantized in chosen.items():
        linear = twin.get_submodule(name)
        if not isinstance(linear, nn.Linear):
            raise SchemeError(f"{name!r} is {type(linear).__name__}, and integers are given for it; expected nn.Linear")
        twin.set_submodule(name, QuantizedLinear(linear, rule, quantized=quantized))
    return twin


def clip_weights(w: np.ndarray, hessian: np.ndarray, rule: GridRule, ratios: tuple[float, ...] = RATIOS) -> np.ndarray:
    """Weights with the ends of each group pulled in, so that rounding them to nearest moves the output least.

    w: (out, in) float32, hessian: (in, in)   ->   (out, in) float32

    Each group tries every part of its range and keeps the best by its own block of the Hessian. A row that the whole
    Hessian finds worse than without clipping keeps its weights.
    """
    size = rule.group_size or w.shape[1]
    groups = w.reshape(len(w), -1, size)  # (out, groups, size)
    h = np.stack([hessian[i : i + size, i : i + size] for i in range(0, w.shape[1], size)])  # (groups, size, size)
    ends = groups.min(axis=2, keepdims=True), groups.max(axis=2, keepdims=True)
    best, least = groups.copy(), np.full(groups.shape[:2], np.inf)
    for ratio in ratios:
        tried = groups.clip(ends[0] * np.float32(ratio), ends[1] * np.float32(ratio))
        change = fake_quantize_nearest(tried.reshape(w.shape), rule).reshape(groups.shape).astype(np.float64) - groups
        moved = change.transpose(1, 0, 2)  # (groups, out, size)
        error = ((moved @ h) * moved).sum(axis=2).T  # (out, groups)
        better = error < least
        best[better], least[better] = tried[better], error[better]
    clipped = best.reshape(w.shape)
    return np.where(rows_made_worse(clipped, w, w, hessian, rule)[:, None], w, clipped)


def rows_made_worse(
    tried: np.ndarray, plain: np.ndarray, w: np.ndarray, hessian: np.ndarray, rule: GridRule
) -> np.ndarray:
    """Which rows move their output of ``w`` further when rounded from ``tried`` than from ``plain``: (out,) bool."""
    errors = [output_error(fake_quantize_nearest(v, rule) - w, hessian) for v in (tried, plain)]
    return errors[0] > errors[1]
