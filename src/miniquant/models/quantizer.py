"""Linear layers are replaced by ones that compute with rounded weights, and frozen, when the rounding is done for good.

``miniquant.quark`` has both under the names that Quark gives them, and ``bridge.ModelExporter`` writes what is frozen.

Source: Quark's documentation, "Bridge from Quark to llama.cpp", for the steps and their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..core.arrays import to_numpy
from ..core.errors import MiniquantError, QuantizationError, SchemeError
from ..quantization.config import Config, QuantizationConfig
from ..quantization.grids import GridRule, QuantizedMatrix, dequantize, quantize
from ..quantization.spec import Affine, QuantizationSpec

Model = TypeVar("Model", bound=nn.Module)


class QuantizedLinear(nn.Module):
    """A linear layer that computes with the weights that its grid gives back; its state dict is that of ``nn.Linear``.

    The grid is fitted when the layer is made. Until ``freeze``, the float weights stay, and every call rounds them.
    The rounding has no gradient. A layer that is made with ``quantized``, integers that are chosen already, is frozen
    from the start, and no grid is fitted.

    Rounded weights are float32 in a model of any dtype: bfloat16 and float16 have too few bits for an integer times a
    float16 scale, and would round the weights a second time. A product is computed in float32, or in float64 for inputs
    in it, and the output has the dtype of the input.
    """

    def __init__(
        self,
        linear: nn.Linear,
        rule: QuantizationSpec | GridRule,
        input: QuantizationSpec | None = None,
        output: QuantizationSpec | None = None,
        quantized: QuantizedMatrix | None = None,
    ) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias  # shared: nothing is copied
        self.rule, self.input, self.output = rule, input, output
        self.input_affine: Affine | None = None  # of a static specification, after calibration
        self.output_affine: Affine | None = None
        self.frozen: QuantizedMatrix | None = None
        self.affine: Affine | None = None  # of a specification that was fitted to the weights
        if quantized is not None:
            self.grid = quantized.grid
            self._freeze(quantized)
            return
        w = to_numpy(self.weight)
        if isinstance(rule, QuantizationSpec):
            self.affine = rule.affine(w)
            self.grid = rule.grid(self.affine, len(w))
        else:
            self.grid = rule.fit(w)

    def forward(self, x: Tensor) -> Tensor:
        """x: (..., in)   ->   (..., out)."""
        w = self.weight if self.frozen else self._on_device(dequantize(self.integers(), self.grid), self.weight)
        dtype = torch.promote_types(x.dtype, torch.float32)
        bias = None if self.bias is None else self.bias.to(dtype)
        x = self._rounded(x, self.input, self.input_affine)
        y = F.linear(x.to(dtype), w.to(dtype), bias).to(x.dtype)
        return self._rounded(y, self.output, self.output_affine)

    def integers(self) -> np.ndarray:
        """What the float weights become on the grid: (out, in) int16."""
        w = to_numpy(self.weight)
        return self.rule.quantize(w, self.grid) if isinstance(self.rule, QuantizationSpec) else quantize(w, self.grid)

    def freeze(self) -> None:
        """Replace the float weights by what the grid gives back, in float32, and keep the integers."""
        self._freeze(QuantizedMatrix(self.integers(), self.grid))

    def _freeze(self, quantized: QuantizedMatrix) -> None:
        self.weight = nn.Parameter(self._on_device(dequantize(*quantized), self.weight), requires_grad=False)
        self.frozen = quantized

    def _rounded(self, x: Tensor, spec: QuantizationSpec | None, affine: Affine | None) -> Tensor:
        """The inputs or outputs on a grid of their own.   x: (..., n)   ->   (..., n)."""
        if spec is None:
            return x
        rows = to_numpy(x).reshape(-1, x.shape[-1])
        if spec.is_dynamic:
            grid = spec.fit(rows)
        elif affine is not None:
            grid = spec.grid(affine, len(rows))
        else:
            raise MiniquantError("the inputs of this layer were not calibrated; pass calibration to quantize_model")
        return self._on_device(dequantize(spec.quantize(rows, grid), grid).reshape(x.shape), x).to(x.dtype)

    @staticmethod
    def _on_device(array: np.ndarray, x: Tensor) -> Tensor:
        return torch.from_numpy(array).to(x.device)

    def extra_repr(self) -> str:
        """For ``print(model)``."""
        out, width = self.weight.shape
        return f"{width} -> {out}, {self.rule.name}{', frozen' if self.frozen else ''}"


def planned(model: nn.Module, config: Config) -> dict[str, QuantizationConfig]:
    """The linear layers that a configuration rounds, by name, each with its part of it.

    Raises ``SchemeError`` for a model without linear layers, one that is quantized already, a layer that shares its
    weights with another module, or a pattern that fits no layer.
    """
    modules = dict(model.named_modules())
    if any(isinstance(module, QuantizedLinear) for module in modules.values()):
        raise SchemeError("this model is quantized already; load it anew, or quantize a copy made before")
    linear = {name: module for name, module in modules.items() if isinstance(module, nn.Linear) and name}
    if not linear:
        raise SchemeError(f"{type(model).__name__} has no nn.Linear inside, so there is nothing to quantize")
    plan = config.layers(linear)
    for name in plan:
        shared = [owner for owner, module in modules.items() if owner != name and _owns(module, linear[name].weight)]
        if shared:
            raise SchemeError(
                f"the weights of {name!r} are those of {shared[0]!r} too, which would change with them; exclude it"
            )
    return plan


@torch.no_grad()
def quantize_linear_layers(
    model: Model,
    config: Config,
    calibration: Iterable[Any] | None = None,
    chosen: Mapping[str, QuantizedMatrix] | None = None,
) -> Model:
    """Replace the linear layers in place, and return the model; the algorithms of a configuration are not run.

    ``calibration``: inputs of the model, one after another. Only ranges of inputs and outputs that are fixed beforehand
    need them. ``chosen``: integers that are chosen already, by the layer's name.

    Raises ``SchemeError`` as ``planned`` does; ``QuantizationError``, with the layer's name, for weights that cannot be
    rounded so; ``MiniquantError`` if calibration is missing, or does not reach a layer. The model is then as it was.
    """
    made, chosen = {}, chosen or {}
    plan = planned(model, config)
    for name, one in plan.items():
        linear: Any = model.get_submodule(name)
        try:
            made[name] = QuantizedLinear(linear, one.weight, one.input_tensors, one.output_tensors, chosen.get(name))
        except QuantizationError as error:
            raise QuantizationError(f"layer {name!r}: {error}") from None
    fixed = [spec for one in plan.values() for spec in (one.input_tensors, one.output_tensors) if spec is not None]
    if not all(spec.is_dynamic for spec in fixed):
        seen = _observe(model, list(plan), calibration)
        for name, layer in made.items():
            inputs, outputs = seen[name]
            if layer.input is not None and not layer.input.is_dynamic:
                layer.input_affine = layer.input.affine(inputs)
            if layer.output is not None and not layer.output.is_dynamic:
                layer.output_affine = layer.output.affine(outputs)
    for name, layer in made.items():
        model.set_submodule(name, layer)
    return model


@torch.no_grad()
def freeze(model: Model) -> Model:
    """Replace the weights by what their grids give back, in place, and return the model in evaluation mode.

    The frozen weights are float32, whatever the model's dtype: what is frozen is what a file holds.

    Raises ``SchemeError`` if nothing in the model is quantized.
    """
    layers = quantized_layers(model)
    if not layers:
        raise SchemeError("nothing in this model is quantized, so there is nothing to freeze; call quantize_model")
    for layer in layers.values():
        if layer.frozen is None:
            layer.freeze()
    return model.eval()


def _owns(module: nn.Module, weight: Tensor) -> bool:
    return any(parameter is weight for parameter in module.parameters(recurse=False))


def quantized_layers(model: nn.Module) -> dict[str, QuantizedLinear]:
    """The quantized layers of a model, by name."""
    return {name: module for name, module in model.named_modules() if isinstance(module, QuantizedLinear)}


def frozen_layers(model: nn.Module) -> dict[str, QuantizedMatrix]:
    """The integers and grids of the quantized layers, by name, once it is certain that the model computes with them.

    Raises ``SchemeError`` for a layer that is not frozen, or whose weights have changed since: by a cast, by training.
    """
    refuse_thawed(model)
    found = {name: layer.frozen for name, layer in quantized_layers(model).items() if layer.frozen is not None}
    for name, quantized in found.items():
        w = model.get_submodule(name).weight
        if w.dtype != torch.float32 or not np.array_equal(to_numpy(w), dequantize(*quantized)):
            raise SchemeError(
                f"{name!r} has other weights than when it was frozen (they are {str(w.dtype).removeprefix('torch.')} "
                "now); freeze again, and export what freeze returns as it is"
            )
    return found


def refuse_thawed(model: nn.Module) -> None:
    """Raises ``SchemeError`` for a quantized layer that is not frozen: its weights are not those it computes with."""
    for name, layer in quantized_layers(model).items():
        if layer.frozen is None:
            raise SchemeError(
                f"{name!r} still rounds float weights at every call; freeze it first, and export what freeze returns"
            )


def _observe(
    model: nn.Module, names: list[str], calibration: Iterable[Any] | None
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What comes into each layer and goes out while the model runs on the calibration: name -> (rows, n), twice."""
    if calibration is None:
        raise MiniquantError(
            "ranges of inputs that are fixed beforehand need calibration; pass inputs of the model, "
            "or choose is_dynamic=True"
        )
    seen: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in names}

    def remember(name: str) -> Any:
        def hook(_module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            seen[name].append((_rows(inputs[0]), _rows(output)))

        return hook

    handles = [model.get_submodule(name).register_forward_hook(remember(name)) for name in names]
    try:
        for x in calibration:
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    for name, parts in seen.items():
        if not parts:
            raise MiniquantError(f"no calibration reached the layer {name!r}; pass inputs of the model")
    return {
        name: (np.concatenate([i for i, _ in parts]), np.concatenate([o for _, o in parts]))
        for name, parts in seen.items()
    }


def _rows(x: Tensor) -> np.ndarray:
    return to_numpy(x).reshape(-1, x.shape[-1]).copy()
