"""What a block of a language model is made of, as the algorithms need it: a MiniGPT's, or that of a Llama or Qwen2.

Both are a chain of halves. Each half is a norm and a module after it, whose output is added to what went in:
``x + module(norm(x))``. Some linear layers of the module read what the norm gives (q, k and v; gate and up), and the
last one writes the output (proj or o; fc2 or down). Between them a Llama's halves multiply rows by something that does
not depend on them, so a factor of a row of v or of up passes through. A GELU lets none pass.

Source: ``modeling_llama.py`` and ``modeling_qwen2.py`` in transformers; Llama 2,
https://arxiv.org/abs/2307.09288, section 2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import QuantizationError
from ..models.language import context_of
from ..models.minigpt import MiniGPT


class Rows(NamedTuple):
    """Where the inputs of a layer come from: input channel i is row ``of[i]`` of ``layer``, times something else.

    of: (in,) int64; in grouped-query attention several heads read the same rows of v.
    """

    layer: Any
    of: np.ndarray


class Half(NamedTuple):
    """Half of a block: the layers by their names, and ``run(x, given)``, the module after the norm."""

    norm: nn.Module
    run: Callable[[Tensor, dict[str, Any]], Tensor]
    entering: dict[str, Any]
    leaving: tuple[str, Any]
    rows: Rows | None


class Blocks(NamedTuple):
    """A model as a chain of halves. ``start(ids)`` gives what enters the first, and what each half is given besides."""

    start: Callable[[Tensor], tuple[Tensor, dict[str, Any]]]
    halves: list[Half]
    context: int
    vocabulary: int


def blocks_of(model: nn.Module) -> Blocks:
    """The blocks of a MiniGPT, a Llama or a Qwen2.

    Raises ``QuantizationError`` for a model of another class, and for a Qwen2 whose blocks attend in two ways.

    >>> from miniquant.models.minigpt import random_model
    >>> [list(half.entering) for half in blocks_of(random_model()).halves][:2]
    [['layers.0.attn.qkv'], ['layers.0.mlp.fc1']]
    """
    if type(model).__name__ not in _KNOWN:
        raise QuantizationError(f"no description of {type(model).__name__}; there are {', '.join(_KNOWN)}")
    if len(set(getattr(model.config, "layer_types", None) or ())) > 1:  # blocks are given what the first one is given
        raise QuantizationError("some blocks attend to a window and some to all tokens; only one kind is described")
    start, halves = _KNOWN[type(model).__name__]
    config: Any = model.config
    return Blocks(lambda ids: start(model, ids), list(halves(model)), context_of(model), config.vocab_size)


def outside_blocks(model: nn.Module) -> list[str]:
    """The names of the linear layers that stay float: a Llama's head. Raises as ``blocks_of`` does."""
    inside = {name for half in blocks_of(model).halves for name in (*half.entering, half.leaving[0])}
    return [name for name, part in model.named_modules() if isinstance(part, nn.Linear) and name not in inside]


def _minigpt_start(model: MiniGPT, ids: Tensor) -> tuple[Tensor, dict[str, Any]]:
    return model.tok_emb(ids) + model.pos_emb.weight[: ids.shape[1]], {}


def _minigpt_halves(model: MiniGPT) -> Iterator[Half]:
    width = model.config.d_model
    for i, block in enumerate(model.blocks):
        name, attn, mlp = f"layers.{i}", block.attn, block.mlp
        value = Rows(attn.qkv, np.arange(2 * width, 3 * width))  # q, k and v stand one below the other
        attention = {f"{name}.attn.qkv": attn.qkv}, (f"{name}.attn.proj", attn.proj)
        yield Half(block.ln1, _alone(attn), *attention, value)
        yield Half(block.ln2, _alone(mlp), {f"{name}.mlp.fc1": mlp.fc1}, (f"{name}.mlp.fc2", mlp.fc2), None)


class _Reached(Exception):
    """Carries what has reached the first block, and stops the forward pass there."""


def _llama_start(model: Any, ids: Tensor) -> tuple[Tensor, dict[str, Any]]:
    """Positions and mask are the model's own: they are seen where the first block is given them."""

    def stop(_module: nn.Module, inputs: tuple[Any, ...], given: dict[str, Any]) -> None:
        raise _Reached(inputs[0], given)

    handle = model.model.layers[0].register_forward_pre_hook(stop, with_kwargs=True)
    try:
        model.model(ids, use_cache=False)
    except _Reached as reached:
        x, given = reached.args
        return x, given
    finally:
        handle.remove()
    raise QuantizationError("the model has run past its first block; it has a forward pass of its own")


def _llama_halves(model: Any) -> Iterator[Half]:
    heads, groups = model.config.num_attention_heads, model.config.num_key_value_heads
    for i, block in enumerate(model.model.layers):
        name, attn, mlp = f"model.layers.{i}", block.self_attn, block.mlp
        rows = np.arange(groups * attn.head_dim).reshape(groups, 1, attn.head_dim)
        shared = np.broadcast_to(rows, (groups, heads // groups, attn.head_dim)).flatten()  # a head after another
        entering = {f"{name}.self_attn.{part}": getattr(attn, part) for part in ("q_proj", "k_proj", "v_proj")}
        leaving = f"{name}.self_attn.o_proj", attn.o_proj
        yield Half(block.input_layernorm, _attending(attn), entering, leaving, Rows(attn.v_proj, shared))
        entering = {f"{name}.mlp.{part}": getattr(mlp, part) for part in ("gate_proj", "up_proj")}
        leaving = f"{name}.mlp.down_proj", mlp.down_proj
        up = Rows(mlp.up_proj, np.arange(len(mlp.up_proj.weight)))
        yield Half(block.post_attention_layernorm, _alone(mlp), entering, leaving, up)


def _alone(module: nn.Module) -> Callable[[Tensor, dict[str, Any]], Tensor]:
    return lambda x, given: module(x)


def _attending(module: nn.Module) -> Callable[[Tensor, dict[str, Any]], Tensor]:
    return lambda x, given: module(x, **given)[0]  # and the weights of attention


_KNOWN: dict[str, tuple[Any, Any]] = {
    "MiniGPT": (_minigpt_start, _minigpt_halves),
    "LlamaForCausalLM": (_llama_start, _llama_halves),
    "Qwen2ForCausalLM": (_llama_start, _llama_halves),
}


@torch.no_grad()
def entering(half: Half, x: Tensor, given: dict[str, Any]) -> Tensor:
    """What reaches the layer that leaves a half.   x: (batch, time, width)   ->   (batch, time, in)."""
    seen: list[Tensor] = []
    handle = half.leaving[1].register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    try:
        half.run(half.norm(x), given)
    finally:
        handle.remove()
    return seen[0]
