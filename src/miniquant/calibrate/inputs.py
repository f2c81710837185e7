"""What flows into each linear layer of a MiniGPT on calibration text, and how wrong a layer's output becomes.

A layer computes ``y = x Wᵀ``. If its weights move by D, its output moves by ``x Dᵀ``, and the mean square of that over
the text is ``d H dᵀ`` for each row d of D, with ``H = Xᵀ X / n``. So H, the Hessian of that error (up to a factor of
two), is all that has to be kept of the text.

Source: GPTQ, https://arxiv.org/abs/2210.17323, section 3; AWQ, https://arxiv.org/abs/2306.00978, section 3.2.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from ..core.errors import QuantizationError
from ..models import corpus
from ..models.minigpt import MiniGPT

LINEAR_LAYERS = ("attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2")  # of a block, in the order of the forward pass
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
def _training_ids() -> np.ndarray:
    return corpus.encode_documents(corpus.load_tokenizer(), corpus.training_documents("topics"))


def calibration_tokens(n: int = WINDOWS, length: int = 256) -> np.ndarray:
    """Windows spread evenly over the *training* topics: (n, length) int64. Held-out text is for measuring alone.

    The topics alone, because calibration text should be like the text that the model will meet. Raises
    ``QuantizationError`` if they do not hold so many windows.

    >>> calibration_tokens(2, 8).shape
    (2, 8)
    """
    ids = _training_ids()
    step = len(ids) // max(1, n)
    if n < 1 or not 1 <= length <= step:
        raise QuantizationError(f"the training text has {len(ids)} tokens, which is not {n} windows of {length}")
    return np.stack([ids[start : start + length] for start in range(0, n * step, step)])


def calibration_walk(
    model: MiniGPT, tokens: np.ndarray | None, title: str, progress: bool | None
) -> tuple[MiniGPT, Iterable[tuple[str, nn.Linear, InputStatistics]]]:
    """A copy of the model, and ``walk_linear_layers`` over that copy with a progress bar of this title.

    tokens: (n, length) int64, from the training text if ``None``. ``progress=None`` shows the bar on a terminal only.
    """
    twin = copy.deepcopy(model).eval()
    tokens = calibration_tokens(length=min(256, model.config.context)) if tokens is None else tokens
    off = None if progress is None else not progress
    n_layers = len(twin.layers) * len(LINEAR_LAYERS)
    return twin, tqdm(walk_linear_layers(twin, tokens), title, n_layers, disable=off, unit="layer")


@torch.no_grad()
def walk_linear_layers(model: MiniGPT, tokens: np.ndarray) -> Iterator[tuple[str, nn.Linear, InputStatistics]]:
    """Every linear layer of the blocks, in the order in which text flows through them: name, layer, what reaches it.

    tokens: (n, length) int64, length <= context. A layer that is changed before the next one is asked for has changed
    what reaches the next one. Raises ``QuantizationError`` for tokens that are no windows of the model's own, and if a
    number that reaches a layer is not finite.

    >>> from miniquant.models.minigpt import random_model
    >>> [name for name, _, _ in walk_linear_layers(random_model(), np.zeros((1, 8), np.int64))][:3]
    ['layers.0.attn.qkv', 'layers.0.attn.proj', 'layers.0.mlp.fc1']
    """
    ids = torch.from_numpy(_windows(model, tokens))
    batches = [ids[start : start + BATCH] for start in range(0, len(ids), BATCH)]
    parts = [model.tok_emb(part) + model.pos_emb.weight[: ids.shape[1]] for part in batches]
    for i, block in enumerate(model.blocks):
        places = [f"layers.{i}.{name}" for name in LINEAR_LAYERS]
        attn, mlp = block.attn, block.mlp
        inside = [block.ln1(x) for x in parts]  # each (windows, length, d_model)
        yield places[0], attn.qkv, _inputs(inside, places[0])
        inside = [_entering(attn.proj, attn, block.ln1(x)) for x in parts]
        yield places[1], attn.proj, _inputs(inside, places[1])
        parts = [x + attn(block.ln1(x)) for x in parts]  # from the start again: the layers may have changed
        inside = [block.ln2(x) for x in parts]
        yield places[2], mlp.fc1, _inputs(inside, places[2])
        inside = [_entering(mlp.fc2, mlp, block.ln2(x)) for x in parts]  # each (windows, length, d_mlp)
        yield places[3], mlp.fc2, _inputs(inside, places[3])
        parts = [x + mlp(block.ln2(x)) for x in parts]


def _entering(layer: nn.Linear, module: nn.Module, x: Tensor) -> Tensor:
    """What reaches a layer inside of a module when ``x`` goes into the module."""
    seen: list[Tensor] = []
    handle = layer.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    try:
        module(x)
    finally:
        handle.remove()
    return seen[0]


def _windows(model: MiniGPT, tokens: np.ndarray) -> np.ndarray:
    tokens, config = np.asarray(tokens), model.config
    if tokens.ndim != 2 or not tokens.size or not np.issubdtype(tokens.dtype, np.integer):
        raise QuantizationError(
            f"calibration needs windows of token ids, (n, length) int64; found {tokens.dtype} of shape {tokens.shape}"
        )
    if tokens.shape[1] > config.context or tokens.min() < 0 or tokens.max() >= config.vocab_size:
        raise QuantizationError(
            f"the windows have {tokens.shape[1]} tokens from {tokens.min()} to {tokens.max()}; the model takes "
            f"{config.context} at most, from 0 to {config.vocab_size - 1}"
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


def get_weight(linear: nn.Linear) -> np.ndarray:
    """A copy of the weights: (out, in) float32."""
    return linear.weight.detach().numpy().copy()


@torch.no_grad()
def set_weight(linear: nn.Linear, w: np.ndarray) -> None:
    """Put other weights in: (out, in)."""
    linear.weight.copy_(torch.from_numpy(np.ascontiguousarray(w, np.float32)))
