"""Rotate what flows through a Llama, so that no channel is far above the others; the model computes what it did before.

Every matrix that reads the residual stream is multiplied by an orthogonal matrix Q, and every matrix that writes to it
by Q's transpose. ``(x Q) (W Q)ᵀ = x Wᵀ``, so each product stays what it was, and x Q has the size of x: an RMSNorm
divides it by the same number. Its gain has to go into the next matrices first, because a gain for each channel and a
mix of all channels cannot change places. A LayerNorm subtracts the mean over channels as well, and x Q has another one.

Between the value rows of a head and the output matrix a second rotation fits. After a SwiGLU none does: it multiplies
number by number.

Source: QuaRot, https://arxiv.org/abs/2404.00456, section 4; SpinQuant, https://arxiv.org/abs/2405.16406, section 3;
QuIP#, https://arxiv.org/abs/2402.04396, section 3, for the Hadamard matrix with random signs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import QuantizationError
from .blocks import Half, blocks_of
from .inputs import Model

ROTATED = ("LlamaForCausalLM", "Qwen2ForCausalLM")
ORTHOGONAL = 1e-9  # how far Q Qᵀ may be from the identity


def fast_hadamard(x: np.ndarray) -> np.ndarray:
    """Each row times the Hadamard matrix / sqrt(n), by sums and differences alone: n log n steps, not n².

    x: (..., n) of a float dtype, n a power of two   ->   the same shape and dtype; done twice, it gives x back

    Number j of the result is the sum of ``(-1)^(bits that i and j have in common) x[i]``, / sqrt(n). Raises
    ``QuantizationError`` for another n.

    >>> fast_hadamard(np.array([8.0, 0.0, 0.0, 0.0])).tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    n = x.shape[-1]
    if n < 1 or n & (n - 1):
        raise QuantizationError(f"the fast Hadamard transform takes rows of a power of two, found {n}")
    y, half = x, 1
    while half < n:
        pairs = y.reshape(-1, 2, half)  # neighbours, `half` numbers each
        first, second = pairs[:, 0], pairs[:, 1]
        y = np.stack([first + second, first - second], axis=1).reshape(x.shape)
        half *= 2
    return np.asarray(y / np.sqrt(n).astype(x.dtype))


def random_rotation(n: int, seed: int = 0) -> np.ndarray:
    """An orthogonal matrix whose numbers are alike in size: random signs, then a Hadamard transform.

    n: any number above 0. Where it is no power of two, the odd factor gets a cosine transform (DCT-II), whose numbers
    are at most sqrt(2) times as large as their root mean square   ->   (n, n) float64; a row x becomes ``x @ Q``

    Without the signs, a row of equal numbers would become one outlier.

    >>> bool(np.allclose(random_rotation(12) @ random_rotation(12).T, np.eye(12)))
    True
    """
    power = n & -n  # the largest power of two that divides n
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], n)
    mixed = np.kron(fast_hadamard(np.eye(power)), _cosines(n // power))
    return signs[:, None] * mixed


def _cosines(m: int) -> np.ndarray:
    """The orthogonal cosine transform: (m, m) float64, [[1]] for m = 1."""
    i = np.arange(m)
    made: np.ndarray = np.cos(np.pi * (i[:, None] + 0.5) * i / m) * np.sqrt(2 / m)
    made[:, 0] = np.sqrt(1 / m)
    return made


def rotate(model: Model, rotation: np.ndarray | None = None, *, heads: bool = True, seed: int = 0) -> Model:
    """A copy of the model that computes the same, with its gains folded and its residual stream rotated.

    model: a Llama or Qwen2 of transformers, in float32 or float64; weights of 16 bits become float32. rotation: (n, n)
    orthogonal, n the width of the stream; ``random_rotation(n, seed)`` by default, and the identity leaves only the
    fold. With ``heads`` the rows of v of each head, and the columns of o, get a rotation of their own. An output head
    that is tied to the embedding becomes a matrix of its own: the gain before it belongs to one of the two only.

    Products are made in float64 and rounded to the weights' type. No calibration text is needed. Raises
    ``QuantizationError`` for another model, and for a rotation of another shape or one that is not orthogonal.
    """
    twin = fold_norms(model)
    width = len(_whole(twin)[0].weight[0])
    q = random_rotation(width, seed) if rotation is None else _checked(rotation, width)
    turned = torch.from_numpy(np.ascontiguousarray(q))
    embedding, _, head = _whole(twin)
    _multiply_columns(embedding, turned)
    _multiply_columns(head, turned)
    for half in blocks_of(twin).halves:
        for linear in half.entering.values():
            _multiply_columns(linear, turned)
        _multiply_rows(half.leaving[1], turned)
        if heads and half.leaving[0].endswith(".self_attn.o_proj"):
            _rotate_heads(half, int(twin.config.num_attention_heads), seed)  # type: ignore[union-attr, arg-type]
    return twin


@torch.no_grad()
def fold_norms(model: Model) -> Model:
    """A copy of the model that computes the same, with every gain of its norms in the next matrices: the gains are 1.

    Raises ``QuantizationError`` for a model other than a Llama or Qwen2 of transformers: a LayerNorm subtracts a mean
    over the channels, and then nothing that mixes channels passes through it.
    """
    if type(model).__name__ not in ROTATED:
        raise QuantizationError(
            f"{type(model).__name__} is not rotated here; {' and '.join(ROTATED)} are. It takes an RMSNorm: "
            "a LayerNorm subtracts the mean over channels, which a rotation changes"
        )
    twin = copy.deepcopy(model).eval()
    twin = twin if next(twin.parameters()).dtype == torch.float64 else twin.float()
    _untie(twin)
    _, norm, head = _whole(twin)
    for half in blocks_of(twin).halves:
        _fold(half.norm, half.entering.values())
    _fold(norm, [head])
    return twin


def _untie(model: Any) -> None:
    """Give an output head that is tied to the embedding weights of its own."""
    embedding, _, head = _whole(model)
    if head.weight is embedding.weight:
        head.weight = nn.Parameter(embedding.weight.detach().clone())
    model.config.tie_word_embeddings = False


def _whole(model: Any) -> tuple[Any, Any, Any]:
    """What belongs to no block: the embedding, the last norm, the output head."""
    return model.model.embed_tokens, model.model.norm, model.lm_head


def _fold(norm: Any, layers: Iterable[Any]) -> None:
    gain = norm.weight.double()
    for linear in layers:
        linear.weight.copy_(linear.weight.double() * gain)  # (out, in) × (in,)
    norm.weight.fill_(1)


@torch.no_grad()
def _multiply_columns(linear: Any, q: Tensor) -> None:
    """W Q, for a matrix whose input is rotated, or an embedding, whose rows are what is rotated."""
    linear.weight.copy_(linear.weight.double() @ q)


@torch.no_grad()
def _multiply_rows(linear: Any, q: Tensor) -> None:
    """Qᵀ W and Qᵀ b, for a layer whose output is to come out rotated."""
    linear.weight.copy_(q.T @ linear.weight.double())
    if linear.bias is not None:
        linear.bias.copy_(q.T @ linear.bias.double())


def _rotate_heads(half: Half, count: int, seed: int) -> None:
    """Each head of v, and the columns of o that it meets. Attention mixes tokens and no channels, so this is exact."""
    assert half.rows is not None  # attention has them
    value, (_, output) = half.rows.layer, half.leaving
    size = output.in_features // count
    h = random_rotation(size, seed)
    _multiply_rows(value, torch.from_numpy(np.kron(np.eye(value.out_features // size), h)))  # a copy for each head
    _multiply_columns(output, torch.from_numpy(np.kron(np.eye(count), h)))


def _checked(rotation: np.ndarray, width: int) -> np.ndarray:
    q = np.asarray(rotation, np.float64)
    if q.shape != (width, width):
        raise QuantizationError(f"a rotation of this model is ({width}, {width}), found {q.shape}")
    off = np.abs(q @ q.T - np.eye(width)).max()
    if not off <= ORTHOGONAL:  # NaN is refused as well
        raise QuantizationError(f"Q Qᵀ differs from the identity by {off:.2g}, so Q is not orthogonal")
    return q
