"""Models whose linear layers lie on a grid, rounded to nearest or with integers that were chosen otherwise.

Also the search for a better grid: pull in the ends of a group where the rest of it gains more than its ends lose.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np
from torch import nn

from ..core.errors import QuantizationError, SchemeError
from ..models.minigpt import MiniGPT
from ..models.quantizer import ModelQuantizer, QuantizedLinear, quantized_layers
from ..quantization.grids import TARGETS, Snapped, Target, restore, snap
from ..quantization.spec import QuantizationConfig
from ..quantization.symmetric import Quantized
from .inputs import output_error, set_weight

RATIOS = tuple(1 - i / 20 for i in range(11))  # 1, 0.95 … 0.5: how much of a group's range the clip search keeps
_LITE = {"int8": "q8_per_channel", "int4_g64": "q4_per_group_64"}


def target_of(target: str | Target) -> Target:
    """A target by its name. Raises ``QuantizationError`` for a name that there is not.

    >>> target_of("Q4_1").group_size
    32
    """
    if not isinstance(target, str):
        return target
    if target not in TARGETS:
        raise QuantizationError(f"no target {target!r}; there are {', '.join(TARGETS)}")
    return TARGETS[target]


def nearest(w: np.ndarray, target: Target) -> Snapped:
    """Round to nearest on the target's own grid: (out, in) float32."""
    grid = target.fit(w)
    return Snapped(snap(w, grid), grid)


def rounded(w: np.ndarray, target: Target) -> np.ndarray:
    """The weights that rounding to nearest leaves: (out, in) float32   ->   the same shape."""
    return restore(*nearest(w, target))


def round_to_nearest(model: MiniGPT, target: str | Target = "Q4_1") -> MiniGPT:
    """A frozen copy with every linear layer rounded to nearest; embeddings, norms and biases stay as they are.

    Raises ``QuantizationError`` for a target that does not exist or that cannot hold the weights.
    """
    quantizer = ModelQuantizer(QuantizationConfig(target_of(target)))
    return quantizer.freeze(quantizer.quantize_model(copy.deepcopy(model)))


def with_integers(model: MiniGPT, chosen: Mapping[str, Snapped], target: Target) -> MiniGPT:
    """A frozen copy whose linear layers hold these integers on these grids, by the name of the layer.

    Nothing is rounded here, and a ``ModelExporter`` writes the integers as they are.
    """
    twin = copy.deepcopy(model).eval()
    for name, snapped in chosen.items():
        set_weight(twin.get_submodule(name), restore(*snapped))
        layer = QuantizedLinear(twin.get_submodule(name), target, None)
        layer.grid, layer.frozen = snapped.grid, snapped
        layer.weight = nn.Parameter(layer.weight.detach(), requires_grad=False)
        twin.set_submodule(name, layer)
    return twin


def lite(model: MiniGPT) -> tuple[dict[str, str], dict[str, Quantized]]:
    """The schemes and integers of a frozen model, as ``write_gguf_lite`` takes them: by the names of the parameters.

    Raises ``SchemeError`` for a layer that is not frozen, and for a grid that GGUF-lite has no type for.
    """
    schemes, chosen = {}, {}
    for name, layer in quantized_layers(model).items():
        if layer.frozen is None or layer.rule.name not in _LITE:
            state = layer.rule.name if layer.frozen else "not frozen"
            raise SchemeError(f"{name!r} is {state}; GGUF-lite holds frozen layers of {' and '.join(_LITE)}")
        q, grid = layer.frozen
        scheme = _LITE[layer.rule.name]
        scale = grid.scale.astype(np.float16)  # it was rounded to that before
        chosen[f"{name}.weight"] = Quantized(q.astype(np.int8), scale[:, 0] if scheme == _LITE["int8"] else scale)
        schemes[f"{name}.weight"] = scheme
    return schemes, chosen


def clip(w: np.ndarray, hessian: np.ndarray, target: Target, ratios: tuple[float, ...] = RATIOS) -> np.ndarray:
    """Weights with the ends of each group pulled in, so that rounding them to nearest moves the output least.

    w: (out, in) float32, hessian: (in, in)   ->   (out, in) float32

    Each group tries every part of its range and keeps the best by its own block of the Hessian. A row that the whole
    Hessian finds worse than without clipping keeps its weights.
    """
    size = target.group_size or w.shape[1]
    groups = w.reshape(len(w), -1, size)  # (out, groups, size)
    h = np.stack([hessian[i : i + size, i : i + size] for i in range(0, w.shape[1], size)])  # (groups, size, size)
    ends = groups.min(axis=2, keepdims=True), groups.max(axis=2, keepdims=True)
    best, least = groups.copy(), np.full(groups.shape[:2], np.inf)
    for ratio in ratios:
        tried = groups.clip(ends[0] * np.float32(ratio), ends[1] * np.float32(ratio))
        change = rounded(tried.reshape(w.shape), target).reshape(groups.shape).astype(np.float64) - groups
        moved = change.transpose(1, 0, 2)  # (groups, out, size)
        error = ((moved @ h) * moved).sum(axis=2).T  # (out, groups)
        better = error < least
        best[better], least[better] = tried[better], error[better]
    best = best.reshape(w.shape)
    return np.where(worse(best, w, w, hessian, target)[:, None], w, best)


def worse(tried: np.ndarray, plain: np.ndarray, w: np.ndarray, hessian: np.ndarray, target: Target) -> np.ndarray:
    """Which rows move their output of ``w`` further when rounded from ``tried`` than from ``plain``: (out,) bool."""
    errors = [output_error(rounded(v, target) - w, hessian) for v in (tried, plain)]
    return errors[0] > errors[1]
