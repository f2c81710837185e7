"""Is a reloaded model the model that was written? Largest absolute errors, tensor by tensor and layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core.arrays import Array, to_numpy
from ..quantization.schemes import GROUP_SIZE, fake_quantize_state, resolve, state_dict_of
from ..quantization.symmetric import absmax_scales, dequantize_rows, qmax, quantize_rows
from .differences import over_limit as over_limit
from .differences import tensor_errors as tensor_errors

WEIGHT_LIMIT = 1e-6  # the assignment's, for every tensor
ACTIVATION_LIMIT = 1e-3  # the assignment's, for every layer


@torch.no_grad()
def layer_outputs(model: nn.Module, tokens: Tensor) -> dict[str, Tensor]:
    """The output of every module during one forward pass, by name, in the order of computation; the logits last.

    tokens: (batch, time) int64. Uses forward hooks, so the model needs no change.
    """
    outputs: dict[str, Tensor] = {}

    def remember(name: str) -> Any:
        def hook(_module: nn.Module, _inputs: object, output: Tensor) -> None:
            outputs[name] = output.detach().clone()

        return hook

    handles = [module.register_forward_hook(remember(name)) for name, module in model.named_modules() if name]
    try:
        outputs["logits"] = model(tokens)
        outputs["logits"] = outputs.pop("logits")  # last
    finally:
        for handle in handles:
            handle.remove()
    return outputs


def layer_errors(expected: nn.Module, found: nn.Module, tokens: Tensor) -> dict[str, float]:
    """max abs difference of every module's output on the same tokens, by name, in the order of computation."""
    return tensor_errors(layer_outputs(expected, tokens), layer_outputs(found, tokens))


def late_rounding(model: Any, schemes: Mapping[str, str]) -> tuple[dict[str, Array], dict[str, Array]]:
    """The trap: a model in memory that keeps its exact float32 scales, while its file stores them as float16.

    Returns the weights that such a fake-quantized model computes with, and those that its file gives back. They differ
    by up to abs(w) · 2^-11, which breaks the assignment's limits. With the stored scales in memory they would be equal.
    """
    state, resolved = state_dict_of(model), resolve(model, schemes)
    computed, stored = dict(fake_quantize_state(model, schemes)), dict(fake_quantize_state(model, schemes))
    for name, scheme in resolved.items():
        if not scheme.startswith("q"):
            continue
        w = to_numpy(state[name])
        bits, groups = (8, 1) if scheme == "q8_per_channel" else (4, w.shape[1] // GROUP_SIZE)
        exact = np.abs(w.reshape(len(w), groups, -1)).max(axis=2) / np.float32(qmax(bits))  # (out, groups) float32
        q = quantize_rows(w, exact, bits)
        computed[name] = torch.from_numpy(dequantize_rows(q, exact))
        stored[name] = torch.from_numpy(dequantize_rows(q, absmax_scales(w, groups, bits)))
    return computed, stored
