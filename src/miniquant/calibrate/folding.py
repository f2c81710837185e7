"""Move a scale of each channel from one layer into the next, so that the model computes the same as before.

``(x / s) (W s)ᵀ = x Wᵀ``: what divides the activations multiplies the columns of the weights. The division costs
nothing at run time, because it goes into the layer in front: into the gain and bias of a norm, or into the rows of v,
or in a Llama into those of up. Into fc1 before fc2 it cannot go: a GELU stands between them, and ``gelu(x / s)`` is
not ``gelu(x) / s``. SwiGLU multiplies ``silu(gate)`` by up, so there a factor of up passes.

Source: SmoothQuant, https://arxiv.org/abs/2211.10438, section 4; AWQ, https://arxiv.org/abs/2306.00978, section 3.2.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..core.errors import QuantizationError
from .blocks import Half, Rows


class Fold(NamedTuple):
    """Where the scale (in,) of layers that read the same inputs goes: into the norm of a half, or into its rows."""

    half: Half
    rows: Rows | None

    def __call__(self, scale: np.ndarray) -> None:
        """Fold a scale (in,) in place. Raises ``QuantizationError`` as the functions below."""
        if self.rows is not None:
            fold_into_rows(self.rows, self.half.leaving[1], scale)
        else:
            fold_into_norm(self.half.norm, self.half.entering.values(), scale)

    def largest(self, x: np.ndarray) -> np.ndarray:
        """x: (in,)   ->   (in,): for each channel the largest of those that have one scale together."""
        return self._of_all(x, np.maximum.reduce)

    def mean(self, x: np.ndarray) -> np.ndarray:
        """x: (in,)   ->   (in,): for each channel the mean of those that have one scale together."""
        return self._of_all(x, np.mean)

    def _of_all(self, x: np.ndarray, statistic: Any) -> np.ndarray:
        if self.rows is None:
            return x
        _, place, count = np.unique(self.rows.of, return_inverse=True, return_counts=True)
        together = x[np.argsort(place, kind="stable")].reshape(-1, count[0])  # (rows, channels of one row)
        found: np.ndarray = statistic(together, axis=1)[place]
        return found


@torch.no_grad()
def fold_into_norm(norm: Any, layers: Collection[Any], scale: np.ndarray) -> None:
    """Divide a norm's output by ``scale`` (in,) and multiply the columns of the layers after it by it, in place.

    The bias of a LayerNorm is divided as its gain is; an RMSNorm has none. The biases of the linear layers stay, for
    they are added afterwards. Raises ``QuantizationError`` unless the scale is a positive number for each channel.
    """
    s = _checked(scale, len(norm.weight))
    norm.weight.div_(s)
    if getattr(norm, "bias", None) is not None:
        norm.bias.div_(s)
    for linear in layers:
        linear.weight *= s  # (out, in) × (in,): column by column


@torch.no_grad()
def fold_into_rows(rows: Rows, linear: Any, scale: np.ndarray) -> None:
    """Divide the rows that make a layer's inputs by ``scale`` (in,) and multiply its columns by it, in place.

    Attention only averages v over positions, and SwiGLU multiplies up by a factor, so a factor of each row passes.
    Raises as ``fold_into_norm`` does, and if channels of one row have two scales.
    """
    s = _checked(scale, linear.in_features)
    of = torch.from_numpy(rows.of)
    source = rows.layer
    divisor = torch.ones(len(source.weight), dtype=s.dtype)
    divisor[of] = s
    if not torch.equal(divisor[of], s):
        raise QuantizationError("channels that are made of the same row need the same scale; found two for one row")
    source.weight /= divisor[:, None]  # (rows, in) / (rows, 1): row by row
    if source.bias is not None:
        source.bias /= divisor
    linear.weight *= s


def _checked(scale: np.ndarray, width: int) -> Tensor:
    s = np.asarray(scale, np.float32)
    if s.shape != (width,) or not np.isfinite(s).all() or not (s > 0).all():
        raise QuantizationError(
            f"a scale to fold is a positive number for each of {width} input channels; found shape {s.shape}, "
            f"from {s.min(initial=0):g} to {s.max(initial=0):g}"
        )
    return torch.from_numpy(s)
