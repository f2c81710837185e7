"""MiniGPT's forward pass in numpy alone, with its keys and values laid open.

A whole window goes through at once, and the keys and values may be replaced by what a cache gives back. Or one token
goes through at a time, and whoever calls keeps the cache.

    model = NumpyGPT(state)                                  # name -> array, as in the state dict of a MiniGPT
    logits = model.logits(tokens, keep_k=lambda k: k.astype(np.float16).astype(np.float32))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

Array = np.ndarray
Keep = Callable[[Array], Array]
Attend = Callable[[int, Array, Array, Array], Array]


def as_it_is(x: Array) -> Array:
    """The cache that loses nothing."""
    return x


class NumpyGPT:
    """A MiniGPT that computes with numpy.

    state: the weights by the names of MiniGPT's state dict, float32; n_heads: how many heads the attention has.
    ``dims`` is the width of a head, ``n_layers`` the number of layers, ``context`` how many positions there are.
    """

    def __init__(self, state: Mapping[str, Array], n_heads: int = 4, epsilon: float = 1e-5) -> None:
        self.state = {name: np.asarray(w, np.float32) for name, w in state.items()}
        self.n_heads, self.epsilon = n_heads, epsilon
        self.n_layers = sum(name.endswith("attn.qkv.weight") for name in state)
        self.context, width = self.state["pos_emb.weight"].shape
        self.dims = width // n_heads

    def logits(
        self,
        tokens: Sequence[int] | Array,
        keep_k: Keep = as_it_is,
        keep_v: Keep = as_it_is,
        group_k: int = 1,
        group_v: int = 1,
    ) -> Array:
        """The logits after each token of a window, if a cache gives back other keys and values.

        tokens: (n,), n <= context; keep_k, keep_v: what the cache gives back for the keys or values of one layer,
        (heads, tokens, dims) float32 -> the same shape. The cache takes keys ``group_k`` tokens at a time, and values
        ``group_v``: a token meets those of the groups that are full by then as the cache gives them back, and later
        ones as they are.   ->   (n, vocab) float32
        """
        tokens = np.asarray(tokens)
        if len(tokens) > self.context:
            raise ValueError(f"{len(tokens)} tokens do not fit the context of {self.context}; pass fewer")
        n = len(tokens)
        later = np.arange(n) > np.arange(n)[:, None]  # not to be seen: (n, n), a row for the token that looks
        from_k, from_v = _in_full_groups(n, group_k), _in_full_groups(n, group_v)  # (n, n): from the cache?

        def attend(layer: int, q: Array, k: Array, v: Array) -> Array:
            scores = q @ keep_k(k).swapaxes(1, 2)  # (heads, n, n)
            if group_k > 1:
                scores = np.where(from_k, scores, q @ k.swapaxes(1, 2))
            parts = softmax(np.where(later, -np.inf, scores * np.float32(1 / math.sqrt(self.dims))))
            out: Array = np.where(from_v, parts, 0) @ keep_v(v)
            if group_v > 1:
                out += np.where(from_v, 0, parts) @ v
            return out

        return self._run(tokens, np.arange(len(tokens)), attend)

    def step(self, token: int, position: int, attend: Attend) -> Array:
        """The logits after one token: (vocab,) float32.

        ``attend`` is called in each layer with its number and the token's query, key and value, (heads, dims) each. It
        keeps the key and the value, and returns what the query gathers from all values so far: (heads, dims).
        """
        if not 0 <= position < self.context:
            raise ValueError(f"position {position} is not in the context of {self.context}")
        one = lambda layer, q, k, v: attend(layer, q[:, 0], k[:, 0], v[:, 0])[:, None]  # noqa: E731
        logits: Array = self._run(np.array([token]), np.array([position]), one)[0]
        return logits

    def _run(self, tokens: Array, positions: Array, attend: Attend) -> Array:
        w = self.state
        x = w["tok_emb.weight"][tokens] + w["pos_emb.weight"][positions]  # (n, width)
        for layer in range(self.n_layers):
            at = f"layers.{layer}."
            qkv = self._linear(f"{at}attn.qkv", self._norm(f"{at}ln1", x))
            q, k, v = qkv.reshape(len(x), 3, self.n_heads, self.dims).transpose(1, 2, 0, 3)  # each (heads, n, dims)
            gathered = attend(layer, q, k, v).swapaxes(0, 1).reshape(len(x), -1)
            x = x + self._linear(f"{at}attn.proj", gathered)
            x = x + self._linear(f"{at}mlp.fc2", gelu(self._linear(f"{at}mlp.fc1", self._norm(f"{at}ln2", x))))
        logits: Array = self._norm("ln_f", x) @ w["tok_emb.weight"].T
        return logits

    def _linear(self, name: str, x: Array) -> Array:
        out: Array = x @ self.state[f"{name}.weight"].T + self.state[f"{name}.bias"]
        return out

    def _norm(self, name: str, x: Array) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        size = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(self.epsilon))
        out: Array = centred / size * self.state[f"{name}.weight"] + self.state[f"{name}.bias"]
        return out


def _in_full_groups(n: int, group: int) -> Array:
    """(n, n) bool: for the token of each row, which tokens belong to a group that is full when it looks?"""
    return np.arange(n) < (np.arange(1, n + 1) // group * group)[:, None]


def plant_key_outliers(
    state: Mapping[str, Array], channels: int = 2, factor: float = 16.0, n_heads: int = 4, seed: int = 0
) -> dict[str, Array]:
    """Weights whose keys have a few large channels, and which compute the same: a new dict, the other arrays shared.

    In every head of every layer, ``channels`` channels of the keys are multiplied by ``factor`` and the same channels
    of the queries divided by it. A product of query and key does not change; with a power of two as the factor, not by
    a bit. state: as in ``NumpyGPT``
    """
    random, found = np.random.default_rng(seed), dict(state)
    for name in (name for name in state if ".attn.qkv." in name and name.endswith("weight")):
        weight, bias = state[name].copy(), state[name.replace("weight", "bias")].copy()
        width = len(weight) // 3
        dims = width // n_heads
        picked = [head * dims + random.choice(dims, channels, replace=False) for head in range(n_heads)]
        queries = np.concatenate(picked)
        for rows, by in ((queries, 1 / factor), (queries + width, factor)):
            weight[rows] *= np.float32(by)
            bias[rows] *= np.float32(by)
        found[name], found[name.replace("weight", "bias")] = weight, bias
    return found


def softmax(x: Array) -> Array:
    """exp, in parts of its sum, along the last axis.

    >>> softmax(np.array([0.0, 0.0, -np.inf])).tolist()
    [0.5, 0.5, 0.0]
    """
    up = np.exp(x - x.max(axis=-1, keepdims=True))
    out: Array = up / up.sum(axis=-1, keepdims=True)
    return out


def gelu(x: Array) -> Array:
    """x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), the GELU of GPT-2.

    >>> gelu(np.array([0.0, 3.0])).round(3).tolist()
    [0.0, 2.996]
    """
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
    out: Array = x / 2 * (1 + np.tanh(inner))
    return out
