"""A type for every matrix, so that a file of at most so many bytes moves the model's probabilities least.

First each matrix is quantized alone, once in each type, and the KL divergence to the float model is measured: its
sensitivity to that type. Then the types are chosen whose KL divergences have the smallest sum within the bytes. The sum
stands for the KL divergence of all of them together; whoever uses the choice measures that one.

Source: the sum is the assumption of HAWQ-V2, https://arxiv.org/abs/1911.03852, which chooses bits of layers by a
second-order measure; here the divergence itself is measured, as there are few matrices.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from tqdm import tqdm

from ..core.errors import QuantizationError, SchemeError
from ..formats.gguf.codecs import decode, encode
from ..formats.gguf.types import GGMLType
from ..models.file_types import is_quantized, tensor_type
from ..models.language import gguf_names, logits_of
from .quality import evaluate


class Cost(NamedTuple):
    """What a matrix costs in one type: its bytes in the file, and the mean KL divergence of a token, in nats."""

    n_bytes: int
    kl: float


Costs = Mapping[str, Mapping[GGMLType, Cost]]  # by the matrix's name, by type


def sensitivities(
    model: Any,
    types: Iterable[GGMLType | str],
    windows: np.ndarray,
    importances: Mapping[str, np.ndarray] | None = None,
    tokenizer: Tokenizer | None = None,
    progress: bool = False,
) -> dict[str, dict[GGMLType, Cost]]:
    """What each matrix costs in each type, while all others stay float32.

    model: a MiniGPT, a Llama or a Qwen2. windows: (n, length + 1) int64, of calibration text: types that were chosen on
    held-out text would fit the text that they are measured on. importances: name -> (in,) float32, how much each column
    counts. ``tokenizer`` is the model's, MiniGPT's by default.   -> llama.cpp's name -> type -> ``Cost``

    Raises ``SchemeError`` for an unknown type, ``QuantizationError`` where a row is no whole number of its blocks.
    """
    kinds, changed, reference = [tensor_type(dtype) for dtype in types], copy.deepcopy(model), _Kept(model)
    matrices = _matrices(changed)
    found: dict[str, dict[GGMLType, Cost]] = {name: {} for name in matrices}
    steps = [(name, dtype) for name in matrices for dtype in kinds]
    for name, dtype in tqdm(steps, desc="sensitivities", unit="matrix", disable=not progress):
        w = matrices[name]
        kept = w.detach().clone()
        blocks = encode(kept.numpy(), dtype, (importances or {}).get(name))
        with torch.no_grad():
            w.copy_(torch.from_numpy(decode(blocks, dtype)))
            kl = evaluate(changed, windows, reference, tokenizer=tokenizer).kl_divergence.mean
            w.copy_(kept)
        found[name][dtype] = Cost(blocks.nbytes, kl)
    return found


def with_types(model: Any, types: Mapping[str, GGMLType | str]) -> Any:
    """A copy whose matrices are what a file with these types gives back, by llama.cpp's names; all else is as it was.

    model: a MiniGPT, a Llama or a Qwen2. Raises ``SchemeError`` for an unknown type and for a name that is none of its
    matrices, ``QuantizationError`` where a row is no whole number of blocks.
    """
    changed = copy.deepcopy(model)
    matrices = _matrices(changed)
    for name, dtype in types.items():
        if name not in matrices:
            raise SchemeError(f"{name!r} is no matrix of this model; there are {', '.join(matrices)}")
        w, kind = matrices[name], tensor_type(dtype)
        with torch.no_grad():
            w.copy_(torch.from_numpy(decode(encode(w.detach().numpy(), kind), kind)))
    return changed


def _matrices(model: Any) -> dict[str, Any]:
    """The parameters that get a type, by llama.cpp's names; a tied head is the embedding, and not there."""
    named = gguf_names(model)
    matrices = {named(name): w for name, w in model.named_parameters()}
    return {name: w for name, w in matrices.items() if is_quantized(name, tuple(w.shape))}


class _Kept:
    """A model that reads every window once."""

    def __init__(self, model: Any) -> None:
        self.model, self.logits = model, dict[bytes, Tensor]()

    def __call__(self, tokens: Tensor) -> Tensor:
        key = tokens.numpy().tobytes()
        if key not in self.logits:
            self.logits[key] = logits_of(self.model, tokens)
        return self.logits[key]


def costs_to_json(costs: Costs) -> dict[str, dict[str, list[float]]]:
    """Names and numbers alone: matrix -> type -> [bytes, KL].

    >>> costs_to_json({"a": {GGMLType.Q4_0: Cost(18, 0.25)}})
    {'a': {'Q4_0': [18, 0.25]}}
    """
    return {
        name: {dtype.name: [cost.n_bytes, float(f"{cost.kl:.6g}")] for dtype, cost in of.items()}
        for name, of in costs.items()
    }


def costs_from_json(stored: Mapping[str, Mapping[str, Iterable[float]]]) -> dict[str, dict[GGMLType, Cost]]:
    """The inverse of ``costs_to_json``.

    >>> costs_from_json({"a": {"Q4_0": [18, 0.25]}})
    {'a': {<GGMLType.Q4_0: 2>: Cost(n_bytes=18, kl=0.25)}}
    """
    found = {}
    for name, of in stored.items():
        pairs = {GGMLType[dtype]: tuple(cost) for dtype, cost in of.items()}
        found[name] = {dtype: Cost(int(n_bytes), float(kl)) for dtype, (n_bytes, kl) in pairs.items()}
    return found


def known_costs(model: str) -> dict[str, dict[GGMLType, Cost]]:
    """What ``sensitivities`` found for "MiniGPT" or "MiniLlama" in ten types, stored with the library.

    ``experiments/29-mixed-precision`` measured it, on sixteen windows of calibration text. Raises ``KeyError`` for
    another model.
    """
    stored = resources.files("miniquant").joinpath("assets/mixed_costs.json").read_text("utf-8")
    return costs_from_json(json.loads(stored)[model])


def best_types(costs: Costs, n_bytes: int) -> dict[str, GGMLType]:
    """The types with the smallest sum of KL divergences, of all whose bytes are at most ``n_bytes`` together.

    The exact answer, by dynamic programming over the bytes: a knapsack in which each matrix takes one of its types.
    Raises ``QuantizationError`` if even the smallest types take more bytes.

    >>> small, large = GGMLType.Q4_0, GGMLType.Q8_0
    >>> costs = {name: {small: Cost(18, kl), large: Cost(34, kl / 100)} for name, kl in {"a": 0.1, "b": 0.3}.items()}
    >>> {name: dtype.name for name, dtype in best_types(costs, 52).items()}
    {'a': 'Q4_0', 'b': 'Q8_0'}
    """
    least = sum(min(cost.n_bytes for cost in of.values()) for of in costs.values())
    if least > n_bytes:
        raise QuantizationError(f"the smallest types take {least:,} bytes together, and {n_bytes:,} are allowed")
    unit = math.gcd(*(cost.n_bytes for of in costs.values() for cost in of.values())) or 1
    room = n_bytes // unit
    sums = np.zeros(room + 1)  # the smallest sum within 0, 1, 2, … units, of the matrices so far
    picks = []
    for of in costs.values():
        rows = np.full((len(of), room + 1), np.inf)
        for row, cost in zip(rows, of.values(), strict=True):
            taken = cost.n_bytes // unit
            if taken <= room:
                row[taken:] = sums[: room + 1 - taken] + cost.kl
        picks.append(rows.argmin(axis=0))
        sums = rows.min(axis=0)
    chosen = {}
    for (name, of), pick in zip(reversed(list(costs.items())), reversed(picks), strict=True):
        dtype = list(of)[pick[room]]
        chosen[name] = dtype
        room -= of[dtype].n_bytes // unit
    return {name: chosen[name] for name in costs}
