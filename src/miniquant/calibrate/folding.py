"""Move a scale of each channel from one layer into the next, so that the model computes the same as before.

``(x / s) (W s)ᵀ = x Wᵀ``: what divides the activations multiplies the columns of the weights. The division costs
nothing at run time, because it goes into the layer in front: into the gain and bias of a LayerNorm, or into the rows
of v. Into fc1 before fc2 it cannot go: a GELU stands between them, and ``gelu(x / s)`` is not ``gelu(x) / s``.

Source: SmoothQuant, https://arxiv.org/abs/2211.10438, section 4; AWQ, https://arxiv.org/abs/2306.00978, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import QuantizationError
from ..models.minigpt import Attention, MiniGPT

Fold = Callable[[np.ndarray], None]


def fold_before(model: MiniGPT, name: str) -> Fold | None:
    """How to fold a scale (in,) before a linear layer of this name, ``"layers.0.mlp.fc1"``; fc2 takes none."""
    number, layer = name.removeprefix("layers.").split(".", 1)
    block = model.blocks[int(number)]
    return {
        "attn.qkv": partial(fold_into_norm, block.ln1, block.attn.qkv),
        "attn.proj": partial(fold_into_value, block.attn),
        "mlp.fc1": partial(fold_into_norm, block.ln2, block.mlp.fc1),
    }.get(layer)


@torch.no_grad()
def fold_into_norm(norm: nn.LayerNorm, linear: nn.Linear, scale: np.ndarray) -> None:
    """Divide a LayerNorm's output by ``scale`` (in,) and multiply the columns of the next layer by it, in place.

    The bias of the norm is divided as its gain is; the bias of the linear layer stays, for it is added afterwards.
    Raises ``QuantizationError`` unless the scale is a positive number for each channel.
    """
    s = _checked(scale, linear.in_features)
    norm.weight.div_(s)
    norm.bias.div_(s)
    linear.weight *= s  # (out, in) × (in,): column by column


@torch.no_grad()
def fold_into_value(attention: Attention, scale: np.ndarray) -> None:
    """Divide the rows of v by ``scale`` (d_model,) and multiply the columns of proj by it, in place.

    Attention only averages v over positions, so a factor of each channel passes through it. Raises as
    ``fold_into_norm`` does.
    """
    d_model = attention.proj.in_features
    s = _checked(scale, d_model)
    attention.qkv.weight[2 * d_model :] /= s[:, None]  # (d_model, d_model) / (d_model, 1): row by row
    attention.qkv.bias[2 * d_model :] /= s
    attention.proj.weight *= s


def _checked(scale: np.ndarray, width: int) -> Tensor:
    s = np.asarray(scale, np.float32)
    if s.shape != (width,) or not np.isfinite(s).all() or not (s > 0).all():
        raise QuantizationError(
            f"a scale to fold is a positive number for each of {width} input channels; found shape {s.shape}, "
            f"from {s.min(initial=0):g} to {s.max(initial=0):g}"
        )
    return torch.from_numpy(s)
