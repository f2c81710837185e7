"""The model quantizer: a configuration's algorithms, then its specifications, and the freezing.

Source: Quark's documentation, "Bridge from Quark to llama.cpp", for the steps and their names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from ..calibrate.awq import awq
from ..calibrate.blocks import outside_blocks
from ..calibrate.gptq import gptq
from ..calibrate.smoothquant import smoothquant
from ..core.errors import MiniquantError, SchemeError
from ..models.quantizer import freeze, planned, quantize_linear_layers, quantized_layers
from ..quantization.config import AWQConfig, Config, GPTQConfig, QuantizationConfig
from ..quantization.grids import GridRule, QuantizedMatrix

Model = TypeVar("Model", bound=nn.Module)


class ModelQuantizer:
    """Quantizes the linear layers of a model as a configuration says. Raises ``SchemeError`` for anything else.

    >>> from miniquant.quark import Config, Dtype, QuantizationConfig, QuantizationSpec
    >>> quantizer = ModelQuantizer(Config(global_quant_config=QuantizationConfig(QuantizationSpec(Dtype.int8))))
    >>> quantizer.quantize_model(nn.Sequential(nn.Linear(8, 4)))
    Sequential(
      (0): QuantizedLinear(8 -> 4, int8 symmetric per_channel, float16 scales)
    )
    """

    def __init__(self, config: Config) -> None:
        if not isinstance(config, Config):
            raise SchemeError(f"{type(config).__name__} is no Config; write Config(global_quant_config=...)")
        self.config = config

    @torch.no_grad()
    def quantize_model(self, model: Model, dataloader: Iterable[Any] | None = None) -> Model:
        """Replace the linear layers in place, and return the model.

        ``dataloader``: inputs of the model, one after another, for an algorithm windows of token ids of one length,
        (n, length). Weights are seen without; a MiniGPT has calibration text of its own.

        Raises ``SchemeError`` for a model without linear layers, one that is quantized already, a layer that shares its
        weights with another module, a pattern that fits no layer, or layers of several rules for one algorithm;
        ``QuantizationError``, with the layer's name, for weights that cannot be rounded so, or a model that an
        algorithm does not know; ``MiniquantError`` if calibration is missing, or reaches a layer not at all.
        The model is then as it was.
        """
        config, chosen = self.config, dict[str, QuantizedMatrix]()
        plan, prepared = planned(model, config), model
        inputs = None if dataloader is None else list(dataloader)
        if config.algo_config or config.pre_quant_opt_config:
            tokens = None if inputs is None else _windows(inputs)
            if config.pre_quant_opt_config:
                prepared = smoothquant(prepared, tokens, config.pre_quant_opt_config.alpha)
            if config.algo_config:
                rule = _one_rule(model, plan)
                if isinstance(config.algo_config, AWQConfig):
                    prepared = awq(prepared, tokens, rule, clip=config.algo_config.clip)
                else:
                    chosen = _by_gptq(prepared, tokens, rule, config.algo_config)
        if prepared is model:
            return quantize_linear_layers(model, config, inputs, chosen)
        before = {name: w.clone() for name, w in model.state_dict().items()}
        model.load_state_dict(prepared.state_dict())
        try:
            return quantize_linear_layers(model, config, inputs, chosen)
        except MiniquantError:
            model.load_state_dict(before)
            raise

    @staticmethod
    def freeze(model: Model) -> Model:
        """Replace the weights by what their grids give back, in place, and return the model in evaluation mode.

        The frozen weights are float32, whatever the model's dtype: what is frozen is what a file holds.

        Raises ``SchemeError`` if nothing in the model is quantized.
        """
        return freeze(model)


def _one_rule(model: nn.Module, plan: dict[str, QuantizationConfig]) -> GridRule:
    """The rule that the layers of the blocks have in common, which an algorithm works with."""
    outside = outside_blocks(model)
    inside = [name for name, part in model.named_modules() if isinstance(part, nn.Linear) and name not in outside]
    rules = [plan[name].weight if name in plan else None for name in inside]
    first = rules[0]
    if first is None or any(rule != first for rule in rules):
        odd = next(name for name, rule in zip(inside, rules, strict=True) if rule is None or rule != first)
        raise SchemeError(
            f"an algorithm works with one specification for all layers of the blocks, and {odd!r} has another or none; "
            "leave the layer out of exclude and layer_quant_config"
        )
    return first


def _by_gptq(
    model: nn.Module, tokens: np.ndarray | None, rule: GridRule, algo: GPTQConfig
) -> dict[str, QuantizedMatrix]:
    found = gptq(model, tokens, rule, damping=algo.damp_percent, act_order=algo.desc_act)
    return {name: layer.frozen for name, layer in quantized_layers(found).items() if layer.frozen is not None}


def _windows(inputs: list[Any]) -> np.ndarray:
    """The calibration as windows of token ids: (n, length)."""
    parts = [np.asarray(x.cpu() if isinstance(x, torch.Tensor) else x) for x in inputs]
    rows = [part.reshape(-1, part.shape[-1]) for part in parts]
    if len(lengths := {part.shape[1] for part in rows}) != 1:
        raise SchemeError(f"calibration windows have the lengths {sorted(lengths)}; cut them to one length")
    return np.concatenate(rows)
