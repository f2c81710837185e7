"""A frozen model's integers and scales for a GGUF-lite file: nothing is rounded a second time."""

from __future__ import annotations

import numpy as np
from torch import nn

from ..core.errors import SchemeError
from ..quantization.symmetric import Quantized
from .quantizer import frozen_layers, quantized_layers

_SCHEMES = {"int8": "q8_per_channel", "int4_g64": "q4_per_group_64"}  # the rule of a layer -> its scheme


def to_gguf_lite(model: nn.Module) -> tuple[dict[str, str], dict[str, Quantized]]:
    """What ``write_gguf_lite`` takes for a frozen model: schemes and integers, by the names of the parameters.

    Returns ``schemes`` (name -> scheme) and ``chosen`` (name -> integers (out, in) int8 and their float16 scales).

    Raises ``SchemeError`` for a layer that is not frozen or was changed since, and for a grid that GGUF-lite has no
    type for.
    """
    schemes, chosen = {}, {}
    layers = quantized_layers(model)
    for name, (q, grid) in frozen_layers(model).items():
        rule = layers[name].rule.name
        if rule not in _SCHEMES:
            raise SchemeError(f"{name!r} is {rule}; GGUF-lite holds frozen layers of {' and '.join(_SCHEMES)}")
        scheme = _SCHEMES[rule]
        scale = grid.scale.astype(np.float16)  # it was rounded to that before
        chosen[f"{name}.weight"] = Quantized(q.astype(np.int8), scale[:, 0] if scheme == _SCHEMES["int8"] else scale)
        schemes[f"{name}.weight"] = scheme
    return schemes, chosen
