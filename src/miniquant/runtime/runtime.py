"""Run a model from its bump file: the weights stay blocks in the mapped file, the activations lie in one arena.

A prompt goes through the layers some tokens at a time; what is generated, token by token. A crew of threads computes
each product, see ``kernels``. Keys and values of earlier tokens are kept. No matrix is ever dequantized as a whole, and
nothing is allocated twice.

Source: the models are those of llama.cpp's ``llama.cpp``, ``qwen2.cpp`` and ``gpt2.cpp`` (``src/models``): RMSNorm,
rotated pairs, grouped key-value heads and SiLU there, LayerNorm, learned positions and GELU (tanh) here. The pairs are
neighbours in a llama, and half a head apart in a qwen2.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.errors import MiniquantError
from ..formats.bump.read import open_bump
from ..formats.bump.types import BumpConfig, BumpType, aligned
from ..formats.gguf.codecs import decode
from . import kernels
from .arena import BumpAllocator
from .crew import Crew
from .kernels import Given, Matrix, multiply, packed_floats, place, warm

Array = np.ndarray
BATCH = 64  # tokens of a prompt that go through the layers together


class Runtime:
    """A model that runs from a bump file, one sequence at a time. Usable in a ``with`` block.

    ``plan`` is the arena's layout, ``context`` how many tokens fit. Raises what ``open_bump`` raises,
    ``QuantizationError`` for a type without a kernel.
    """

    def __init__(self, path: str | os.PathLike[str], context: int | None = None) -> None:
        self.file = open_bump(path)
        self.config = config = self.file.config
        if config.architecture != "gpt2" and config.head_dim % 2:
            raise MiniquantError(f"{path}: heads of {config.head_dim} cannot be turned in pairs; head_dim must be even")
        if context is not None:
            context = _whole(context, "context", "a whole number of tokens from 1 on")
            if context < 1:
                raise MiniquantError(f"the context is {context}, expected a whole number of tokens from 1 on")
        self.context = config.context if context is None else min(context, config.context)
        self.batch = min(BATCH, self.context)
        warm(t.dtype for t in self.file.tensors.values() if len(t.shape) == 2)
        self.plan = arena_plan(config, self.context, self.batch)
        try:
            self.arena = self.plan.allocate()
        except (OSError, OverflowError) as error:
            raise MiniquantError(
                f"{path}: no {self.plan.size} bytes for the arena of {self.context} tokens ({error}); "
                "pass a smaller context"
            ) from None
        self.used = 0
        self._layer = self._gpt2_layer if config.architecture == "gpt2" else self._llama_layer
        self._weights = {name: (self.file.raw(name), t.dtype, t.shape) for name, t in self.file.tensors.items()}
        for name in [name for name in self._weights if name.endswith("W_gate_up")]:  # C-Kernel-Engine's one for two
            raw, kind, (rows, n) = self._weights.pop(name)
            for part, half in zip(("W_gate", "W_up"), np.split(raw, 2)):
                self._weights[name.replace("W_gate_up", part)] = (half, kind, (rows // 2, n))
        self._matrices = {name: Matrix(*found) for name, found in self._weights.items() if len(found[2]) == 2}
        self._vectors = {name: found[0].view("<f4") for name, found in self._weights.items() if len(found[2]) == 1}
        self._zeros = {name for name, vector in self._vectors.items() if not vector.any()}  # biases that add nothing
        self._rows: dict[int, Rows] = {}
        large = max(matrix.raw.nbytes for matrix in self._matrices.values()) > kernels.PARALLEL_MIN
        self._crew = Crew(kernels.THREADS if large else 1, max(matrix.n for matrix in self._matrices.values()))
        if config.architecture != "gpt2":
            self._turns = config.rope_theta ** (-np.arange(config.head_dim // 2) * 2.0 / config.head_dim)
            if config.rope_factors:
                self._turns /= self._vectors["rope_factors"]

    def logits(self, tokens: Sequence[int]) -> Array:
        """The logits after every token of one sequence, from its start: (tokens, vocabulary) float32, a fresh array."""
        self.reset()
        out = np.empty((len(tokens), self.config.vocab), np.float32)
        for start in range(0, len(tokens), self.batch):
            n = self._forward(tokens[start : start + self.batch])
            self._head(n, out[start : start + n])
        return out

    def greedy(self, tokens: Sequence[int], n: int, watch: Callable[[], object] | None = None) -> list[int]:
        """The ``n`` most likely next tokens, one after another; ``watch`` is called after each."""
        n = _whole(n, "length", "how many tokens to add")
        found: list[int] = []
        for token in self.generate(tokens, n):
            found.append(token)
            if watch is not None:
                watch()
        return found

    def generate(self, tokens: Sequence[int], n: int, temperature: float = 0.0, seed: int = 0) -> Iterator[int]:
        """The next ``n`` tokens, one after another, as soon as each is known.

        With a ``temperature`` above 0, each is drawn by the softmax of logits / temperature, from numpy's generator of
        this ``seed``; with 0 it is the most likely one. Raises ``MiniquantError`` for an empty beginning, and when the
        context is full.
        """
        self.reset()
        if n and not len(tokens):
            raise MiniquantError("there is no token to go on from; begin with one, for example the end of a text")
        random = np.random.default_rng(seed)
        logits = self.read(tokens) if n else None
        for number in range(n):
            assert logits is not None
            token = _drawn(logits, temperature, random) if temperature else int(logits.argmax())
            yield token
            if number + 1 < n:
                logits = self.feed(token)

    def reset(self) -> None:
        """Begin a new sequence."""
        self.used = 0

    def read(self, tokens: Sequence[int]) -> Array:
        """Go on by several tokens; returns the logits after the last (in the arena: the next call overwrites them).

        Raises ``MiniquantError`` for a token that does not exist, when the context is full, and for none at all.
        """
        if not len(tokens):
            raise MiniquantError("there is no token to read")
        for start in range(0, len(tokens), self.batch):
            n = self._forward(tokens[start : start + self.batch])
        logits = self.arena["logits"]
        self._head(n, logits[None])
        return logits

    def feed(self, token: int) -> Array:
        """Go on by one token; see ``read``."""
        return self.read((token,))

    def replace_weight(self, name: str, w: Array) -> None:
        """Compute with other weights from now on: ``w`` float32, in the shape of the tensor ``name``.

        The file stays as it is. Raises ``MiniquantError`` for a name that the file lacks, or another shape.
        """
        if name not in self._weights or w.shape != self._weights[name][2]:
            expected = self._weights[name][2] if name in self._weights else "no such tensor"
            raise MiniquantError(f"{name!r}: found weights of shape {w.shape}, expected {expected}")
        raw = np.ascontiguousarray(w, np.float32).reshape(-1).view(np.uint8)
        self._weights[name] = (raw, BumpType.FP32, w.shape)
        if len(w.shape) == 2:
            self._matrices[name] = Matrix(*self._weights[name])
        else:
            self._vectors[name] = raw.view("<f4")
            self._zeros.discard(name)

    def close(self) -> None:
        """Let go of the file and the arena."""
        self._crew.dismiss()
        self._weights, self._matrices, self._vectors, self._rows, self.arena = {}, {}, {}, {}, {}
        self.file.close()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- a few tokens through the model; every buffer has a row for each

    def _forward(self, tokens: Sequence[int]) -> int:
        """Go on by at most ``batch`` tokens, up to ``x``; returns how many they are."""
        n, vocab = len(tokens), self.config.vocab
        whole = [_whole(token, "token", "a number of the vocabulary") for token in tokens]
        for token in whole:
            if not 0 <= token < vocab:
                raise MiniquantError(f"there is no token {token}; the vocabulary has {vocab}")
        if self.used + n > self.context:
            raise MiniquantError(f"the context of {self.context} tokens is full; reset() begins a new sequence")
        for row, token in enumerate(whole):
            self.arena["x"][row] = self._row("token_embd", token)
            if self.config.architecture == "gpt2":
                self.arena["x"][row] += self._row("position_embd", self.used + row)
        if self.config.architecture != "gpt2":
            angles = np.arange(self.used, self.used + n)[:, None] * self._turns
            self.arena["turns"][:n, ::2], self.arena["turns"][:n, 1::2] = np.cos(angles), np.sin(angles)
        if n not in self._rows:
            self._rows[n] = Rows(self.arena, self.config, n)
        self._crew.call()
        for layer in range(self.config.layers):
            self._layer(layer, f"layers.{layer}.", self._rows[n])
        self.used += n
        return n

    def _head(self, n: int, out: Array) -> None:
        """The logits after the last of ``n`` tokens, as many as ``out`` has rows.   out: (tokens, vocabulary)."""
        x, normed = (self.arena[name][n - len(out) : n] for name in ("x", "normed"))
        self._norm("output_norm", x, normed)
        given = Given(normed, self.arena["packed"].reshape(-1))
        multiply(self._crew, self._matrices["token_embd" if self.config.tied else "output"], given, place(out))

    def _llama_layer(self, layer: int, at: str, rows: Rows) -> None:
        a = rows.arrays
        self._norm(f"{at}ln1_gamma", a["x"], a["normed"])
        self._linear(rows, "normed", *((f"{at}W{name}", name, f"{at}b{name}") for name in ("q", "k", "v")))
        self._rotate(a["qk"])
        self._attend(layer, a["q"], a["k"], a["v"], a["mixed"])
        self._residual(rows, "mixed", f"{at}Wo", f"{at}bo")
        self._norm(f"{at}ln2_gamma", a["x"], a["normed"])
        gate, up, bias = a["gate"], a["inner"], f"{at}b1"
        self._linear(rows, "normed", (f"{at}W_gate", "gate", None), (f"{at}W_up", "inner", None))
        if bias not in self._zeros:
            of_gate, of_up = np.split(self._vectors[bias], 2)
            gate += of_gate
            up += of_up
        up *= gate
        np.negative(gate, out=gate)  # SiLU: gate / (1 + e^-gate)
        with np.errstate(over="ignore"):
            np.exp(gate, out=gate)
        gate += 1
        up /= gate
        self._residual(rows, "inner", f"{at}W_down", f"{at}b2")

    def _gpt2_layer(self, layer: int, at: str, rows: Rows) -> None:
        a = rows.arrays
        self._norm(f"{at}ln1_gamma", a["x"], a["normed"], f"{at}ln1_beta")
        self._linear(rows, "normed", (f"{at}Wqkv", "qkv", f"{at}bqkv"))
        self._attend(layer, a["q"], a["k"], a["v"], a["mixed"])
        self._residual(rows, "mixed", f"{at}Wo", f"{at}bo")
        self._norm(f"{at}ln2_gamma", a["x"], a["normed"], f"{at}ln2_beta")
        self._linear(rows, "normed", (f"{at}W_up", "inner", f"{at}b1"))
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
        self._residual(rows, "inner", f"{at}W_down", f"{at}b2")

    # -- what layers are made of

    def _norm(self, gamma: str, x: Array, normed: Array, beta: str | None = None) -> None:
        """x, normalized, into ``normed``: by its root mean square in a llama, by mean and variance in a gpt2."""
        centred = x
        if self.config.architecture == "gpt2":
            centred = np.subtract(x, x.mean(axis=1, dtype=np.float64, keepdims=True), out=normed, casting="same_kind")
        variance = np.vecdot(centred, centred) / np.float32(x.shape[1])
        np.multiply(centred, 1 / np.sqrt(variance + np.float32(self.config.epsilon))[:, None], out=normed)
        normed *= self._vectors[gamma]
        if self.config.architecture == "gpt2":
            normed += self._vectors[beta or f"{gamma}_beta"]

    def _linear(self, rows: Rows, x: str, *parts: tuple[str, str, str | None]) -> None:
        """For each part, the names of W, of a buffer and maybe of a bias: buffer = x · Wᵀ (+ bias).

        x is the name of a buffer; it is rounded once for all parts.
        """
        given = rows.given[x]
        given.changed()
        for name, out, bias in parts:
            multiply(self._crew, self._matrices[name], given, rows.places[out])
            if bias is not None and bias not in self._zeros:
                rows.arrays[out] += self._vectors[bias]

    def _residual(self, rows: Rows, x: str, name: str, bias: str) -> None:
        """The activations += W · (what a part of the layer has made) + bias."""
        self._linear(rows, x, (name, "step", bias))
        rows.arrays["x"] += rows.arrays["step"]

    def _rotate(self, qk: Array) -> None:
        """Turn each pair in each head of q and of k, in place: neighbours, or in a qwen2 those half a head apart.

        A pair is a complex number; a turn is a product with one of magnitude 1.
        """
        n, half = len(qk), self.config.head_dim // 2
        turns = self.arena["turns"][:n].view(np.complex64)[:, None]
        if self.config.architecture != "qwen2":
            qk.view(np.complex64).reshape(n, -1, half)[...] *= turns
            return
        pairs = qk.reshape(n, -1, 2, half)
        turned = self.arena["turned"][:n].view(np.complex64).reshape(n, -1, half)
        turned.real, turned.imag = pairs[:, :, 0], pairs[:, :, 1]
        turned *= turns
        pairs[:, :, 0], pairs[:, :, 1] = turned.real, turned.imag

    def _attend(self, layer: int, q: Array, k: Array, v: Array, mixed: Array) -> None:
        """Keep k and v, then mix the values of all tokens so far, by the softmax of q · k, into ``mixed``."""
        config, n, time = self.config, len(q), self.used + len(q)
        heads, group, width = config.kv_heads, config.heads // config.kv_heads, config.head_dim
        keys, values = (self.arena[name][layer, :, :, :width] for name in ("keys", "values"))  # (heads, context, width)
        for kept, new in ((keys, k), (values, v)):
            kept[:, self.used : time] = new.reshape(n, heads, width).swapaxes(0, 1)
        rows, found = q.reshape(-1, group, width), mixed.reshape(-1, group, width)  # of one token
        if n > 1:
            queries = self.arena["queries"].reshape(-1)[: q.size].reshape(heads, group, n, width)
            queries[...] = q.reshape(n, heads, group, width).transpose(1, 2, 0, 3)
            rows = found = queries.reshape(heads, group * n, width)
        scores = self.arena["scores"][:, : group * n, :time]  # row g · n + t: head g of the group, token t
        np.matmul(rows, keys[:, :time].swapaxes(1, 2), out=scores)
        scores *= np.float32(1 / math.sqrt(width))
        for t in range(n - 1):
            scores[:, t::n, self.used + t + 1 :] = -np.inf  # no token sees a later one
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        np.matmul(scores, values[:, :time], out=found)
        if n > 1:
            mixed.reshape(n, heads, group, width)[...] = queries.transpose(2, 0, 1, 3)

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


def _drawn(logits: Array, temperature: float, random: np.random.Generator) -> int:
    """A token, drawn by the softmax of logits / temperature."""
    weights = np.exp((logits.astype(np.float64) - logits.max()) / temperature)
    sums = weights.cumsum()
    return min(int(np.searchsorted(sums, random.random() * sums[-1], side="right")), len(logits) - 1)


class Rows:
    """The first ``n`` rows of the buffers that have a row for each token, and where they lie; made once for each n."""

    def __init__(self, arena: dict[str, Array], config: BumpConfig, n: int) -> None:
        names = ("x", "normed", "mixed", "step", "qk", "v", "qkv", "gate", "spare", "inner")
        self.arrays = a = {name: arena[name][:n] for name in names if name in arena}
        if "qk" in a:
            a["q"], a["k"] = a["qk"][:, : config.heads_width], a["qk"][:, config.heads_width :]
        else:
            a["q"], a["k"], a["v"] = np.split(a["qkv"], 3, axis=1)
        packed = arena["packed"].reshape(-1)
        self.given = {name: Given(a[name], packed) for name in ("normed", "mixed", "inner")}
        self.places = {name: place(array) for name, array in a.items()}


def arena_plan(config: BumpConfig, context: int, batch: int = 1) -> BumpAllocator:
    """Where the activations of a model lie, for ``batch`` tokens at once; rows of heads and of scores are aligned."""
    plan, kv, half = BumpAllocator(), config.kv_heads * config.head_dim, config.head_dim // 2
    widths = {"x": config.embed, "normed": config.embed, "mixed": config.heads_width, "step": config.embed}
    if config.architecture == "gpt2":
        widths |= {"qkv": 3 * config.embed, "spare": config.intermediate}
    else:
        both = config.heads_width + kv
        widths |= {"qk": both, "v": kv, "turns": 2 * half, "gate": config.intermediate}
        if config.architecture == "qwen2":
            widths["turned"] = both
    for name, width in (widths | {"inner": config.intermediate, "queries": config.heads_width}).items():
        plan.reserve(name, batch, width)
    plan.reserve("packed", packed_floats(batch, max(config.embed, config.intermediate, config.heads_width)))
    plan.reserve("scores", config.kv_heads, batch * config.heads // config.kv_heads, aligned(context))
    plan.reserve("logits", config.vocab)
    for name in ("keys", "values"):
        plan.reserve(name, config.layers, config.kv_heads, context, aligned(config.head_dim))
    return plan
