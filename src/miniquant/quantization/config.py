"""What happens to the layers of a model, in the terms of AMD's Quark: specifications, exceptions, an algorithm.

Source: Quark's documentation, "Bridge from Quark to llama.cpp"; ``quark.torch.quantization.config.config``.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..core.errors import SchemeError
from .grids import GridRule
from .spec import QSchemeType, QuantizationSpec


@dataclass(frozen=True)
class QuantizationConfig:
    """How the numbers of a linear layer are rounded.

    ``weight``: a specification, or any other rule that chooses a grid
    ``input_tensors``, ``output_tensors``: how what comes in and what goes out is rounded, if at all

    Raises ``SchemeError`` for specifications that make no sense there.
    """

    weight: QuantizationSpec | GridRule
    input_tensors: QuantizationSpec | None = None
    output_tensors: QuantizationSpec | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.weight, "fit"):
            raise SchemeError(f"weight: {self.weight!r} is no QuantizationSpec and no other rule")
        if getattr(self.weight, "is_dynamic", False):
            raise SchemeError(
                "weight: is_dynamic=True fits a scale to every call's numbers, and weights are the same in each; "
                "use is_dynamic=False, or make it the specification of the inputs"
            )
        for name, spec in {"input_tensors": self.input_tensors, "output_tensors": self.output_tensors}.items():
            if spec is not None and not isinstance(spec, QuantizationSpec):
                raise SchemeError(f"{name}: {spec!r} is no QuantizationSpec")
            if spec is not None and not spec.is_dynamic and spec.qscheme != QSchemeType.per_tensor:
                raise SchemeError(
                    f"{name}: {spec.name} with is_dynamic=False: rows come and go, so scales that are fixed beforehand "
                    "are shared by all; use QSchemeType.per_tensor, or is_dynamic=True"
                )


@dataclass(frozen=True)
class AWQConfig:
    """Scale the columns that matter before rounding. ``clip``: pull in the ends of a group where that pays."""

    clip: bool = True


@dataclass(frozen=True)
class GPTQConfig:
    """Round column by column, and let later columns make up for it.

    ``damp_percent``: what is added to the diagonal of the Hessian, as a share of its mean. ``desc_act``: the columns
    with the largest activations first.
    """

    damp_percent: float = 0.01
    desc_act: bool = True


@dataclass(frozen=True)
class SmoothQuantConfig:
    """Move the large channels of activations into the weights; ``alpha`` is the share that moves, from 0 to 1."""

    alpha: float = 0.5


@dataclass(frozen=True)
class Config:
    """What happens to the linear layers of a model.

    ``global_quant_config``: what holds for all of them
    ``layer_quant_config``: another one, by name or pattern (``*`` stands for anything); the first that fits counts
    ``exclude``: names or patterns of layers that stay as they are
    ``algo_config``: an algorithm that chooses the integers, in the place of rounding to nearest
    ``pre_quant_opt_config``: what is done to the float model before

    Raises ``SchemeError`` for parts of another kind.
    """

    global_quant_config: QuantizationConfig
    layer_quant_config: Mapping[str, QuantizationConfig] = field(default_factory=dict)
    exclude: Iterable[str] = ()
    algo_config: AWQConfig | GPTQConfig | None = None
    pre_quant_opt_config: SmoothQuantConfig | None = None

    def __post_init__(self) -> None:
        if isinstance(self.exclude, str):
            raise SchemeError(f"exclude={self.exclude!r} is one string; pass a list of names: [{self.exclude!r}]")
        for where, one in {"global_quant_config": self.global_quant_config, **self.layer_quant_config}.items():
            if not isinstance(one, QuantizationConfig):
                raise SchemeError(f"{where}: {one!r} is no QuantizationConfig; write QuantizationConfig(weight=...)")
        if not isinstance(self.algo_config, AWQConfig | GPTQConfig | None):
            raise SchemeError(f"algo_config: {self.algo_config!r} is neither AWQConfig() nor GPTQConfig()")
        if not isinstance(self.pre_quant_opt_config, SmoothQuantConfig | None):
            raise SchemeError(f"pre_quant_opt_config: {self.pre_quant_opt_config!r} is no SmoothQuantConfig")

    def layers(self, names: Iterable[str]) -> dict[str, QuantizationConfig]:
        """The configuration of every layer that has one.

        Raises ``SchemeError`` for a pattern that no name fits: a slip of the pen would leave a layer in float.
        """
        names = list(names)
        for pattern in [*self.exclude, *self.layer_quant_config]:
            if not fnmatch.filter(names, pattern):
                raise SchemeError(f"no linear layer is called {pattern!r}; there are {', '.join(names)}")
        found = {}
        for name in names:
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.exclude):
                own = [one for pattern, one in self.layer_quant_config.items() if fnmatch.fnmatchcase(name, pattern)]
                found[name] = (own or [self.global_quant_config])[0]
        return found
