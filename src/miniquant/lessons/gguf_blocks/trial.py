"""The trained model with its matrices in ggml's types: how many bytes, and how far its predictions move."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping

BUDGET = 2_320_000  # bytes for all matrices of MiniGPT; a little more than llama.cpp's Q4_K_M takes
WINDOWS = 3  # of held-out text


@functools.cache
def matrices() -> dict[str, tuple[int, int]]:
    """The matrices of MiniGPT that get a type, by llama.cpp's names: (out, in)."""
    from ...models.pretrained import load_pretrained
    from ...models.to_gguf import gguf_name

    state = load_pretrained().state_dict()
    return {gguf_name(name): tuple(w.shape) for name, w in state.items() if w.ndim == 2 and name != "pos_emb.weight"}


def bytes_of(types: Mapping[str, str]) -> int:
    """The bytes of all matrices in these types."""
    from ...formats.gguf.types import GGMLType

    return sum(GGMLType[types[name]].bytes_of(shape) for name, shape in matrices().items())


@functools.cache
def _weights():
    """The weights of the model by llama.cpp's names."""
    from ...models.pretrained import load_pretrained
    from ...models.to_gguf import gguf_name

    return {gguf_name(key): w.numpy() for key, w in load_pretrained().state_dict().items()}


@functools.cache
def _coded(name: str, kind: str):
    """A matrix of the model as a type gives it back: (out, in) float32."""
    from ...formats.gguf import decode, encode

    return decode(encode(_weights()[name], kind), kind)


def divergence(types: Mapping[str, str]) -> float:
    """KL(float || model with these types) of a token on held-out text, in nats."""
    import torch

    from ...evaluate.quality import evaluate
    from ...models.corpus import held_out_windows
    from ...models.pretrained import load_pretrained
    from ...models.to_gguf import gguf_name

    model = load_pretrained()
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for key, w in twin.state_dict().items():
            if gguf_name(key) in matrices():
                w.copy_(torch.from_numpy(_coded(gguf_name(key), types[gguf_name(key)])))
    return evaluate(twin, held_out_windows(limit=WINDOWS), reference=model).kl_divergence.mean


def score(choose) -> float:
    """The divergence of the model with the types that a student's function chooses for it."""
    weights = {name: out * inside for name, (out, inside) in matrices().items()}
    types = choose(weights, BUDGET)
    if others := set(types.values()) - {"Q8_0", "Q4_0"}:
        raise ValueError(f"only Q8_0 and Q4_0 are allowed, not {', '.join(map(str, others))}")
    if bytes_of(types) > BUDGET:
        raise ValueError(f"{bytes_of(types):,} bytes; the budget is {BUDGET:,}")
    return divergence(types)


def presets() -> dict[str, float]:
    """The divergence of llama.cpp's presets, by its rules for GPT-2 with one matrix for embedding and head."""
    from ...models.file_types import PRESETS
    from ...models.pretrained import load_pretrained

    keys = {"general.architecture": "gpt2", "gpt2.block_count": load_pretrained().config.n_layers}
    found = {"every matrix as Q4_0": dict.fromkeys(matrices(), "Q4_0")}
    for name in ("Q4_0", "Q4_K_M"):
        types = PRESETS[name].types_of(matrices(), keys)
        found[f"llama.cpp's {name}"] = {matrix: types[matrix].name for matrix in matrices()}
    return {f"{name}, {bytes_of(types):,} bytes": divergence(types) for name, types in found.items()}
