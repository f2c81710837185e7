"""The trained model with a type for each matrix: how many bytes, and how far its predictions move."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping

ASKED = 12  # how often a choice may be measured
WINDOWS = 4  # of held-out text
CALIBRATION = 2  # windows that ``measure`` reads


@functools.cache
def table() -> dict[str, dict[str, tuple[int, float]]]:
    """What each matrix of MiniGPT costs in each type, as the library measured it: name -> type -> (bytes, KL)."""
    from ...evaluate.mixed import known_costs

    return {name: {kind.name: tuple(cost) for kind, cost in of.items()} for name, of in known_costs("MiniGPT").items()}


@functools.cache
def q4_k_m() -> dict[str, str]:
    """The types that llama.cpp's Q4_K_M gives to the matrices of MiniGPT."""
    from ...models.file_types import PRESETS
    from ...models.minigpt import MiniGPTConfig

    config = MiniGPTConfig()
    shapes = {"token_embd.weight": (config.vocab_size, config.d_model)}
    parts = {"attn_qkv": (3, 1), "attn_output": (1, 1), "ffn_up": (4, 1), "ffn_down": (1, 4)}
    for layer in range(config.n_layers):
        shapes |= {f"blk.{layer}.{part}.weight": (256 * out, 256 * inside) for part, (out, inside) in parts.items()}
    keys = {"general.architecture": "gpt2", "gpt2.block_count": config.n_layers}
    return {name: kind.name for name, kind in PRESETS["Q4_K_M"].types_of(shapes, keys).items()}


def bytes_of(types: Mapping[str, str]) -> int:
    """The bytes of all matrices in these types."""
    return sum(table()[name][kind][0] for name, kind in types.items())


@functools.cache
def _coded(name: str, kind: str):
    """A matrix of the model as a type gives it back: (out, in) float32."""
    from ...formats.gguf import decode, encode

    w = _parameters()[name]
    return decode(encode(w, kind), kind).reshape(w.shape)


@functools.cache
def _parameters():
    from ...models.pretrained import load_pretrained
    from ...models.to_gguf import gguf_name

    return {gguf_name(name): w.numpy() for name, w in load_pretrained().state_dict().items() if w.ndim == 2}


def divergence(types: Mapping[str, str], windows) -> float:
    """KL(float || model with these types) of a token of the windows, in nats."""
    import torch

    from ...evaluate.quality import evaluate
    from ...models.pretrained import load_pretrained
    from ...models.to_gguf import gguf_name

    model = load_pretrained()
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for name, w in twin.named_parameters():
            if gguf_name(name) in types:
                w.copy_(torch.from_numpy(_coded(gguf_name(name), types[gguf_name(name)])))
    return evaluate(twin, windows, reference=model).kl_divergence.mean


def held_out(types: Mapping[str, str]) -> float:
    """The divergence on held-out text."""
    from ...models.corpus import held_out_windows

    return divergence(types, held_out_windows(limit=WINDOWS))


class Measure:
    """The divergence on calibration text, for a choice of types; it answers ``ASKED`` times."""

    def __init__(self) -> None:
        self.left = ASKED

    def __call__(self, types: Mapping[str, str]) -> float:
        """The divergence. Raises ``ValueError`` once it has answered so often."""
        from ...calibrate import calibration_tokens

        if not self.left:
            raise ValueError(f"measure was called more than {ASKED} times")
        self.left -= 1
        return divergence(types, calibration_tokens(CALIBRATION))


def score(choose) -> float:
    """The divergence, on held-out text, of the model with the types that a student's function chooses for it."""
    budget = bytes_of(q4_k_m())
    types = choose({name: dict(of) for name, of in table().items()}, budget, Measure())
    if bytes_of(types) > budget:
        raise ValueError(f"{bytes_of(types):,} bytes; the budget is {budget:,}")
    return held_out(types)


def rivals() -> dict[str, float]:
    """The divergence of llama.cpp's own choice within the same bytes, and of one type for all matrices."""
    one = {name: "IQ4_NL" for name in table()}
    return {
        f"llama.cpp's Q4_K_M, {bytes_of(q4_k_m()):,} bytes": held_out(q4_k_m()),
        f"every matrix as IQ4_NL, {bytes_of(one):,} bytes": held_out(one),
    }
