"""Run a model from its bump file: the weights stay blocks in the mapped file, the activations lie in one arena.

A token at a time: its row of the embedding is decoded, every matrix meets the activations in ``kernels.matvec``, keys
and values of earlier tokens are kept. No matrix is ever dequantized as a whole, and nothing is allocated twice.

Source: the models are those of llama.cpp's ``llama.cpp`` and ``gpt2.cpp`` (``src/models``): RMSNorm, rotated pairs,
grouped key-value heads and SiLU there, LayerNorm, learned positions and GELU (tanh) here.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import MiniquantError
from ..formats.bump.read import open_bump
from ..formats.bump.types import BumpConfig, BumpType, aligned
from ..formats.gguf.codecs import decode
from .arena import BumpAllocator
from .kernels import matvec, warm

Array = np.ndarray


class Runtime:
    """A model that runs from a bump file, one sequence at a time. Usable in a ``with`` block.

    ``plan`` is the arena's layout, ``context`` how many tokens fit. Raises what ``open_bump`` raises,
    ``QuantizationError`` for a type without a kernel.
    """

    def __init__(self, path: str | os.PathLike[str], context: int | None = None) -> None:
        self.file = open_bump(path)
        self.config = config = self.file.config
        if config.architecture == "llama" and config.head_dim % 2:
            raise MiniquantError(f"{path}: heads of {config.head_dim} cannot be turned in pairs; head_dim must be even")
        if context is not None:
            context = _whole(context, "context", "a whole number of tokens from 1 on")
            if context < 1:
                raise MiniquantError(f"the context is {context}, expected a whole number of tokens from 1 on")
        self.context = config.context if context is None else min(context, config.context)
        warm(t.dtype for t in self.file.tensors.values() if len(t.shape) == 2)
        self.plan = arena_plan(config, self.context)
        try:
            self.arena = self.plan.allocate()
        except (OSError, OverflowError) as error:
            raise MiniquantError(
                f"{path}: no {self.plan.size} bytes for the arena of {self.context} tokens ({error}); "
                "pass a smaller context"
            ) from None
        self.used = 0
        self._layer = self._llama_layer if config.architecture == "llama" else self._gpt2_layer
        self._weights = {name: (self.file.raw(name), t.dtype, t.shape) for name, t in self.file.tensors.items()}

    def logits(self, tokens: Sequence[int]) -> Array:
        """The logits after every token of one sequence, from its start: (tokens, vocabulary) float32, a fresh array."""
        self.reset()
        out = np.empty((len(tokens), self.config.vocab), np.float32)
        for index, token in enumerate(tokens):
            out[index] = self.feed(token)
        return out

    def greedy(self, tokens: Sequence[int], n: int, watch: Callable[[], object] | None = None) -> list[int]:
        """The ``n`` most likely next tokens, one after another; ``watch`` is called after each."""
        self.reset()
        n = _whole(n, "length", "how many tokens to add")
        for token in tokens[:-1]:
            self.feed(token, head=False)
        found: list[int] = []
        following = tokens[-1] if len(tokens) else None
        for _ in range(n):
            if following is None:
                raise MiniquantError("there is no token to go on from; begin with one, for example the end of a text")
            following = int(self.feed(following).argmax())
            found.append(following)
            if watch is not None:
                watch()
        return found

    def reset(self) -> None:
        """Begin a new sequence."""
        self.used = 0

    def feed(self, token: int, head: bool = True) -> Array:
        """Go on by one token; returns the logits after it (in the arena: the next call overwrites them).

        Raises ``MiniquantError`` for a token that does not exist, or when the context is full.
        """
        token = _whole(token, "token", "a number of the vocabulary")
        if not 0 <= token < self.config.vocab:
            raise MiniquantError(f"there is no token {token}; the vocabulary has {self.config.vocab}")
        if self.used >= self.context:
            raise MiniquantError(f"the context of {self.context} tokens is full; reset() begins a new sequence")
        a, x = self.arena, self.arena["x"]
        x[:] = self._row("token_embd", token)
        if self.config.architecture == "gpt2":
            x += self._row("position_embd", self.used)
        else:
            self._rope_angles(self.used)
        for layer in range(self.config.layers):
            self._layer(layer, f"layers.{layer}.")
        self.used += 1
        if head:
            self._norm("output_norm")
            self._linear("token_embd" if self.config.tied else "output", a["normed"], a["logits"])
        return a["logits"]

    def replace_weight(self, name: str, w: Array) -> None:
        """Compute with other weights from now on: ``w`` float32, in the shape of the tensor ``name``.

        The file stays as it is. Raises ``MiniquantError`` for a name that the file lacks, or another shape.
        """
        if name not in self._weights or w.shape != self._weights[name][2]:
            expected = self._weights[name][2] if name in self._weights else "no such tensor"
            raise MiniquantError(f"{name!r}: found weights of shape {w.shape}, expected {expected}")
        raw = np.ascontiguousarray(w, np.float32).reshape(-1).view(np.uint8)
        self._weights[name] = (raw, BumpType.FP32, w.shape)

    def close(self) -> None:
        """Let go of the file and the arena."""
        self._weights, self.arena = {}, {}
        self.file.close()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the two kinds of layer

    def _llama_layer(self, layer: int, at: str) -> None:
        a, inner = self.arena, self.config.intermediate
        self._norm(f"{at}ln1_gamma")
        for name in ("q", "k", "v"):
            self._linear(f"{at}W{name}", a["normed"], a[name], f"{at}b{name}")
        self._rotate(a["q"])
        self._rotate(a["k"])
        self._attend(layer, a["q"], a["k"], a["v"])
        self._residual(f"{at}Wo", a["mixed"], f"{at}bo")
        self._norm(f"{at}ln2_gamma")
        gate, up, bias = a["gate"], a["inner"], self._vector(f"{at}b1")
        self._linear(f"{at}W_gate", a["normed"], gate)
        self._linear(f"{at}W_up", a["normed"], up)
        gate += bias[:inner]
        up += bias[inner:]
        up *= gate
        np.negative(gate, out=gate)  # SiLU: gate / (1 + e^-gate)
        with np.errstate(over="ignore"):
            np.exp(gate, out=gate)
        gate += 1
        up /= gate
        self._residual(f"{at}W_down", up, f"{at}b2")

    def _gpt2_layer(self, layer: int, at: str) -> None:
        a = self.arena
        self._norm(f"{at}ln1_gamma", f"{at}ln1_beta")
        self._linear(f"{at}Wqkv", a["normed"], a["qkv"], f"{at}bqkv")
        self._attend(layer, *np.split(a["qkv"], 3))
        self._residual(f"{at}Wo", a["mixed"], f"{at}bo")
        self._norm(f"{at}ln2_gamma", f"{at}ln2_beta")
        self._linear(f"{at}W_up", a["normed"], a["inner"], f"{at}b1")
        u, t = a["inner"], a["spare"]  # GELU: u / 2 · (1 + tanh(√(2/π) · (u + 0.044715 u³)))
        np.multiply(u, u, out=t)
        t *= np.float32(0.044715)
        t += 1
        t *= u
        t *= np.float32(math.sqrt(2 / math.pi))
        np.tanh(t, out=t)
        t += 1
        u *= t
        u *= np.float32(0.5)
        self._residual(f"{at}W_down", u, f"{at}b2")

    # -- what layers are made of

    def _norm(self, gamma: str, beta: str | None = None) -> None:
        """x, normalized, into ``normed``: by its root mean square in a llama, by mean and variance in a gpt2."""
        x, out = self.arena["x"], self.arena["normed"]
        if self.config.architecture == "gpt2":
            np.subtract(x, x.mean(dtype=np.float64), out=out, casting="same_kind")
            beta = beta or f"{gamma}_beta"
        else:
            out[:] = x
        variance = float(np.dot(out, out)) / len(out)
        out *= np.float32(1 / math.sqrt(variance + self.config.epsilon))
        out *= self._vector(gamma)
        if beta is not None:
            out += self._vector(beta)

    def _linear(self, name: str, x: Array, out: Array, bias: str | None = None) -> None:
        """out = W · x (+ bias), with W and the bias by their names.   x: (in,)   ->   out: (out,), overwritten."""
        raw, kind, _ = self._weights[name]
        matvec(raw, kind, x, out)
        if bias is not None:
            out += self._vector(bias)

    def _residual(self, name: str, x: Array, bias: str) -> None:
        """x += W · (what a part of the layer has made) + bias."""
        self._linear(name, x, self.arena["step"], bias)
        self.arena["x"] += self.arena["step"]

    def _rope_angles(self, position: int) -> None:
        """The angles of a position: pair i turns by position · theta^(-2i / head_dim)."""
        half, theta = self.config.head_dim // 2, self.config.rope_theta
        angles = position * theta ** (-np.arange(half) * 2.0 / self.config.head_dim)
        self.arena["cos"][:], self.arena["sin"][:] = np.cos(angles), np.sin(angles)

    def _rotate(self, q: Array) -> None:
        """Turn each pair of neighbours in each head, in place."""
        pairs, (even, odd) = q.reshape(-1, self.config.head_dim // 2, 2), (self.arena["even"], self.arena["odd"])
        even, odd = even[: len(pairs)], odd[: len(pairs)]
        cos, sin = self.arena["cos"], self.arena["sin"]
        np.multiply(pairs[..., 0], cos, out=even)
        np.multiply(pairs[..., 1], sin, out=odd)
        even -= odd
        np.multiply(pairs[..., 0], sin, out=odd)
        pairs[..., 1] *= cos
        pairs[..., 1] += odd
        pairs[..., 0] = even

    def _attend(self, layer: int, q: Array, k: Array, v: Array) -> None:
        """Keep k and v, then mix the values of all tokens so far, by the softmax of q · k, into ``mixed``."""
        config, time = self.config, self.used + 1
        heads, group, width = config.kv_heads, config.heads // config.kv_heads, config.head_dim
        keys, values = (self.arena[name][layer, :, :, :width] for name in ("keys", "values"))  # (heads, context, width)
        keys[:, self.used], values[:, self.used] = k.reshape(heads, width), v.reshape(heads, width)
        scores = self.arena["scores"][:, :, :time]  # (heads, group, time)
        np.matmul(q.reshape(heads, group, width), keys[:, :time].transpose(0, 2, 1), out=scores)
        scores *= np.float32(1 / math.sqrt(width))
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        np.matmul(scores, values[:, :time], out=self.arena["mixed"].reshape(heads, group, width))

    def _vector(self, name: str) -> Array:
        return self._weights[name][0].view("<f4")

    def _row(self, name: str, row: int) -> Array:
        raw, kind, shape = self._weights[name]
        return decode(raw.reshape(shape[0], -1)[row], kind.blocks)


def _whole(value: Any, name: str, expected: str) -> int:
    """An integer of Python or numpy, as Python's. Raises ``MiniquantError`` for anything else, truth values too."""
    try:
        if not isinstance(value, bool | np.bool_):
            return operator.index(value)
    except TypeError:
        pass
    raise MiniquantError(f"the {name} is {value!r:.40}, expected {expected}")


def arena_plan(config: BumpConfig, context: int) -> BumpAllocator:
    """Where the activations of a model lie; rows of heads and of scores have the aligned lengths."""
    plan, kv = BumpAllocator(), config.kv_heads * config.head_dim
    for name in ("x", "normed", "mixed", "step"):
        plan.reserve(name, config.embed)
    if config.architecture == "llama":
        half = config.head_dim // 2
        for name, width in {"q": config.embed, "k": kv, "v": kv, "cos": half, "sin": half}.items():
            plan.reserve(name, width)
        for name in ("even", "odd"):
            plan.reserve(name, config.heads, half)
    else:
        plan.reserve("qkv", 3 * config.embed)
    for name in ("gate" if config.architecture == "llama" else "spare", "inner"):
        plan.reserve(name, config.intermediate)
    plan.reserve("scores", config.kv_heads, config.heads // config.kv_heads, aligned(context))
    plan.reserve("logits", config.vocab)
    for name in ("keys", "values"):
        plan.reserve(name, config.layers, config.kv_heads, context, aligned(config.head_dim))
    return plan
