"""Searches for the scale and the minimum of a block, scored on blocks that they have not seen.

A *search* is a function ``search(w) -> (scale, minimum)``: w is (n, 32) float32, a block in each row, and both results
are (n, 1) float32. Whatever it returns is judged as a block of Q4_1 stores it: both numbers are rounded to float16, and
each weight goes to the nearest of the 16 values scale × q + minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from typing import NamedTuple

import numpy as np

from ..core.assets import asset
from ..formats.gguf.codecs.kquant import spread_importance
from ..formats.gguf.codecs.search import search_scale_and_min, steps
from ..formats.safetensors.read import open_safetensors

Search = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
SIZE, TOP = 32, 15  # weights of a block, the largest integer
WORSE = 1.01  # a block counts as worse from so many times the squared error of plain rounding on


def plain_rounding(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """No search: the minimum is the smallest weight, and 15 steps reach the largest one.

    w: (n, 32) float32   ->   scale, minimum: (n, 1) float32
    """
    low = w.min(axis=1, keepdims=True)
    return (w.max(axis=1, keepdims=True) - low) / np.float32(TOP), low


def ggml_search(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What ggml finds for a sub-block of Q4_K, before scale and minimum become integers of six bits.

    w: (n, 32) float32   ->   scale, minimum: (n, 1) float32; no minimum is above 0

    Source: ``make_qkx2_quants`` in ggml's ``ggml-quants.c``. The error of a large weight counts more there.
    """
    x = np.ascontiguousarray(w.T)
    with np.errstate(divide="ignore", invalid="ignore"):  # a try whose integers are all equal is never kept
        found = search_scale_and_min(
            x, spread_importance(x), TOP, steps(TOP, -1.0, 20), absolute=False, cut_first=False
        )
    return found.scale[:, None], -found.min[:, None]


def restored(w: np.ndarray, scale: np.ndarray, minimum: np.ndarray) -> np.ndarray:
    """The weights that a block of Q4_1 gives back.   w: (n, 32), scale, minimum: (n, 1)   ->   (n, 32) float32."""
    s, m = (np.asarray(part).astype(np.float16).astype(np.float32) for part in (scale, minimum))
    q = np.rint((w - m) / np.where(s == 0, np.float32(1), s)).clip(0, TOP)
    back: np.ndarray = q * s + m
    return back


def block_errors(w: np.ndarray, scale: np.ndarray, minimum: np.ndarray) -> np.ndarray:
    """The sum of the squared errors of each block, with scale and minimum rounded to float16.

    w: (n, 32) float32, scale, minimum: (n, 1)   ->   (n, 1) float64

    >>> w = np.float32([[0, 1, 2, 3] * 8])
    >>> block_errors(w, np.float32([[1]]), np.float32([[0]])), block_errors(w, np.float32([[2]]), np.float32([[0]]))
    (array([[0.]]), array([[16.]]))
    """
    found: np.ndarray = np.square(restored(w, scale, minimum) - w, dtype=np.float64).sum(axis=1, keepdims=True)
    return found


def made_worse(w: np.ndarray, scale: np.ndarray, minimum: np.ndarray) -> np.ndarray:
    """Which blocks have more than 1.01 times their error with plain rounding: (n,) bool.

    A difference below a part in 1e9 of the block's own squares does not count.
    """
    allowed = WORSE * block_errors(w, *plain_rounding(w)) + 1e-9 * np.square(w, dtype=np.float64).sum(axis=1)[:, None]
    worse: np.ndarray = ~(block_errors(w, scale, minimum) <= allowed)[:, 0]  # an error that is NaN is worse, too
    return worse


class SearchScore(NamedTuple):
    """How a search did on some blocks. rmse: of the weights' own root mean square, in per cent."""

    rmse: float
    worse: int  # blocks whose squared error is more than 1 % above that of plain rounding
    blocks: int


def score_search(search: Search, w: np.ndarray) -> SearchScore:
    """Score a search on blocks.   w: (n, 32) float32."""
    found = search(w)
    rmse = 100 * float(np.sqrt(block_errors(w, *found).sum() / np.square(w, dtype=np.float64).sum()))
    return SearchScore(rmse, int(made_worse(w, *found).sum()), len(w))


def unseen_blocks(n: int = 2000) -> dict[str, np.ndarray]:
    """Blocks that no lab shows: of the trained model's matrices, and of three distributions; the same each time.

    ->   {name: (n, 32) float32}

    Raises ``ModelMissing`` if the trained models are not installed.
    """
    rng = np.random.default_rng(2026)
    with resources.as_file(asset("minigpt.safetensors")) as path, open_safetensors(path) as file:
        names = sorted(name for name in file.tensors if name.endswith(("qkv.weight", "proj.weight", "fc2.weight")))
        model = np.concatenate([file.tensor(name).reshape(-1, SIZE) for name in names])
    families = {
        "the model": model[np.sort(rng.choice(len(model), n, replace=False))],
        "Gaussian": rng.standard_normal((n, SIZE)),
        "Laplace": rng.laplace(size=(n, SIZE)),
        "uniform": rng.uniform(-1, 1, (n, SIZE)),
    }
    return {name: w.astype(np.float32) for name, w in families.items()}


def score_searches(
    searches: Mapping[str, Search], families: Mapping[str, np.ndarray] | None = None
) -> dict[str, dict[str, SearchScore]]:
    """``score_search`` for several searches on several families: {search: {family: score}}.

    families: {name: (n, 32) float32}; ``unseen_blocks()`` by default
    """
    families = unseen_blocks() if families is None else families
    return {name: {of: score_search(search, w) for of, w in families.items()} for name, search in searches.items()}
