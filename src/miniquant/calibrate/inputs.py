"""What flows into each linear layer of a model on calibration text, and how wrong a layer's output becomes.

A layer computes ``y = x Wᵀ``. If its weights move by D, its output moves by ``x Dᵀ``, and the mean square of that over
the text is ``d H dᵀ`` for each row d of D, with ``H = Xᵀ X / n``. So H, the Hessian of that error (up to a factor of
two), is all that has to be kept of the text.

Source: GPTQ, https://arxiv.org/abs/2210.17323, section 3; AWQ, https://arxiv.org/abs/2306.00978, section 3.2.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from tqdm import tqdm

from ..core.errors import QuantizationError
from ..models import corpus
from ..models.language import context_of
from ..models.minigpt import MiniGPT
from .blocks import Blocks, blocks_of, entering
from .folding import Fold

Model = TypeVar("Model", bound=nn.Module)

WINDOWS = 128  # of 256 tokens: the default calibration text
BATCH = 8  # windows at once


class InputStatistics(NamedTuple):
    """What was seen at the entrance of one linear layer.

    hessian: (in, in) float64, Xᵀ X / n, not damped
    mean: (in,) float64, the mean of abs(x) in each channel
    largest: (in,) float64, the largest abs(x) of each channel
    """

    hessian: np.ndarray
    mean: np.ndarray
    largest: np.ndarray


@functools.cache
def _training_ids(tokenizer: Tokenizer | None) -> np.ndarray:
    return corpus.encode_documents(tokenizer or corpus.load_tokenizer(), corpus.training_documents("topics"))


def calibration_tokens(n: int = WINDOWS, length: int = 256, tokenizer: Tokenizer | None = None) -> np.ndarray:
    """Windows spread evenly over the *training* topics: (n, length) int64. Held-out text is for measuring alone.

    The topics alone, because calibration text should be like the text that the model will meet. They are cut by
    MiniGPT's tokenizer, or by another one. Raises ``QuantizationError`` if they do not hold so many windows.

    >>> calibration_tokens(2, 8).shape
    (2, 8)
    """
    ids = _training_ids(tokenizer)
    step = len(ids) // max(1, n)
    if n < 1 or not 1 <= length <= step:
        raise QuantizationError(f"the training text has {len(ids)} tokens, which is not {n} windows of {length}")
    return np.stack([ids[start : start + length] for start in range(0, n * step, step)])


class Group(NamedTuple):
    """Linear layers that read the same numbers, by name; what they read; and where a scale before them can go."""

    layers: dict[str, Any]
    seen: InputStatistics
    fold: Fold | None


def calibration_walk(
    model: Model, tokens: np.ndarray | None, title: str, progress: bool | None
) -> tuple[Model, Iterable[Group]]:
    """A copy of the model in float32, and ``walk_groups`` over that copy with a progress bar of this title.

    tokens: (n, length) int64, from the training text if ``None``. ``progress=None`` shows the bar on a terminal only.
    Raises ``QuantizationError`` if there are no tokens for a model that does not read as MiniGPT does.
    """
    if tokens is None and not isinstance(model, MiniGPT):
        raise QuantizationError(
            f"calibration text is token ids of the model's own tokenizer, and {type(model).__name__} has no default; "
            "pass tokens, for MiniLlama calibration_tokens(tokenizer=minillama.load_tokenizer())"
        )
    twin = copy.deepcopy(model).eval().float()
    tokens = calibration_tokens(length=min(256, context_of(model))) if tokens is None else tokens
    off = None if progress is None else not progress
    total = 2 * len(blocks_of(twin).halves)
    return twin, tqdm(walk_groups(twin, tokens), title, total, disable=off, unit="layer")


@torch.no_grad()
def walk_groups(model: nn.Module, tokens: np.ndarray) -> Iterator[Group]:
    """Every linear layer of the blocks, in the order in which text flows through them, with what reaches it.

    tokens: (n, length) int64, length <= context. Layers that read the same numbers come together. A layer that is
    changed before the next group is asked for has changed what reaches the next one. Raises ``QuantizationError`` for
    tokens that are no windows of the model's own, and if a number that reaches a layer is not finite.

    >>> from miniquant.models.minigpt import random_model
    >>> [list(group.layers) for group in walk_groups(random_model(), np.zeros((1, 8), np.int64))][:3]
    [['layers.0.attn.qkv'], ['layers.0.attn.proj'], ['layers.0.mlp.fc1']]
    """
    blocks = blocks_of(model)
    ids = torch.from_numpy(_windows(blocks, tokens))
    started = [blocks.start(ids[first : first + BATCH]) for first in range(0, len(ids), BATCH)]
    parts, given = [x for x, _ in started], [about for _, about in started]
    for half in blocks.halves:
        inside = [half.norm(x) for x in parts]  # each (windows, length, width)
        yield Group(half.entering, _inputs(inside, next(iter(half.entering))), Fold(half, None))
        inside = [entering(half, x, about) for x, about in zip(parts, given, strict=True)]  # each (…, in)
        name, linear = half.leaving
        yield Group({name: linear}, _inputs(inside, name), Fold(half, half.rows) if half.rows else None)
        # from the start again: the layers may have changed
        parts = [x + half.run(half.norm(x), about) for x, about in zip(parts, given, strict=True)]


def _windows(blocks: Blocks, tokens: np.ndarray) -> np.ndarray:
    tokens = np.asarray(tokens)
    if tokens.ndim != 2 or not tokens.size or not np.issubdtype(tokens.dtype, np.integer):
        raise QuantizationError(
            f"calibration needs windows of token ids, (n, length) int64; found {tokens.dtype} of shape {tokens.shape}"
        )
    if tokens.shape[1] > blocks.context or tokens.min() < 0 or tokens.max() >= blocks.vocabulary:
        raise QuantizationError(
            f"the windows have {tokens.shape[1]} tokens from {tokens.min()} to {tokens.max()}; the model takes "
            f"{blocks.context} at most, from 0 to {blocks.vocabulary - 1}"
        )
    return tokens.astype(np.int64)


def _inputs(parts: list[Tensor], name: str) -> InputStatistics:
    """The statistics of what reaches a layer: parts (windows, length, in) float32."""
    width, rows = parts[0].shape[-1], 0
    hessian, total, largest = np.zeros((width, width)), np.zeros(width), np.zeros(width)
    for part in parts:
        x = part.reshape(-1, width)  # (tokens, in)
        rows += len(x)
        hessian += (x.T @ x).numpy()
        size = x.abs()
        total += size.sum(0).numpy()
        np.maximum(largest, size.amax(0).numpy(), out=largest)
    if not np.isfinite(total).all():
        raise QuantizationError(f"what reaches {name} is not finite on this text; look at the weights in front of it")
    return InputStatistics(hessian / rows, total / rows, largest)


def output_error(change: np.ndarray, hessian: np.ndarray) -> np.ndarray:
    """The mean square by which each output moves when the weights do.

    change: (out, in), hessian: (in, in)   ->   (out,) float64

    >>> output_error(np.array([[1.0, 0.0], [1.0, -1.0]]), np.array([[2.0, 1.0], [1.0, 3.0]]))
    array([2., 3.])
    """
    change = change.astype(np.float64)
    moved: np.ndarray = ((change @ hessian) * change).sum(axis=1)
    return moved


def get_weight(linear: Any) -> np.ndarray:
    """A copy of the weights: (out, in) float32."""
    w: np.ndarray = linear.weight.detach().numpy().copy()
    return w


@torch.no_grad()
def set_weight(linear: Any, w: np.ndarray) -> None:
    """Put other weights in: (out, in)."""
    linear.weight.copy_(torch.from_numpy(np.ascontiguousarray(w, np.float32)))
