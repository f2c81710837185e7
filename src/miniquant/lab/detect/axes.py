"""Wrong arrays that are the right one with an axis taken together: its first part, its mean, a running sum."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np

from .numbers import array_of
from .orders import same
from .seen import Seen

TAKEN = (
    ("the first part", lambda x, axis: x.take(0, axis)),
    ("the last part", lambda x, axis: x.take(-1, axis)),
    ("the mean", np.mean),
    ("the sum", np.sum),
    ("the maximum", np.max),
    ("the minimum", np.min),
)
RUNNING = (
    ("the largest of the right values up to there", np.maximum.accumulate),
    ("the sum of the right values up to there", np.cumsum),
    ("the difference to the right value before it", lambda x: np.diff(x, prepend=0)),
    ("the share of the right value in the sum of all", lambda x: x / x.sum()),
    ("the share of the right value in the sum of all, in percent", lambda x: 100 * x / x.sum()),
    ("the right value divided by the largest one", lambda x: x / x.max()),
    ("the right value divided by the first one", lambda x: x / x[0]),
    ("the largest of the right values", lambda x: np.full_like(x, x.max())),
    ("the mean of the right values", lambda x: np.full_like(x, x.mean())),
)


def of_axes(expected: Any, got: Any) -> Iterator[Seen]:
    """Arrays, and lists and dicts of numbers."""
    if isinstance(expected, dict) and isinstance(got, dict) and list(expected) != list(got):
        return  # values of different keys are not compared
    e, g = array_of(expected), array_of(got)
    if e is None or g is None or e.dtype.kind not in "iuf" or g.dtype.kind not in "iuf":
        return
    e, g = e.astype(float), g.astype(float)
    if not np.isfinite(e).all() or not np.isfinite(g).all():
        return
    plain = isinstance(expected, dict | list | tuple)
    with np.errstate(all="ignore"):
        if e.ndim == g.ndim == 3 and e.size == g.size and len(set(e.reshape(-1).tolist())) > 3 and not plain:
            yield from _reshaped(e, g)
        if e.ndim and g.ndim == e.ndim - 1 and not plain:
            yield from _taken(e, g)
        elif e.ndim == 1 == g.ndim and e.shape == g.shape and e.size > 2 and not same(e, g):
            for words, function in RUNNING:
                if same(function(e), g):
                    text = f"every value is {words}"
                    yield Seen("something else computed", text, "Compare it with the docstring.", 18, weak=True)
            for a, b, words in ((e[:-1], g[1:], "one place later"), (e[1:], g[:-1], "one place earlier")):
                if same(a, b) and a.any():
                    text = f"the right values stand {words} than they must"
                    yield Seen("shifted", text, "Look at where the count begins.", 18, weak=True)


def _reshaped(e: np.ndarray, g: np.ndarray) -> Iterator[Seen]:
    """The right values, put into an array of other axes, and these exchanged then."""
    orders = list(permutations(range(e.ndim)))
    for first in orders:
        for second in orders:
            lengths = [e.shape[axis] for axis in first]
            if tuple(lengths[axis] for axis in second) != g.shape or first == second == orders[0]:
                continue
            if np.array_equal(e.reshape(-1).reshape(lengths).transpose(second), g):
                was = " and ".join([", ".join(map(str, first[:-1])), str(first[-1])])
                text = f"the result has the right values in an array with the lengths of axes {was} of the right one"
                if first == orders[0]:
                    text = f"the result is the right one after `transpose{second}`"
                elif second != orders[0]:
                    text += f", and then `transpose{second}`"
                steps = sum(a != b for order in (first, second) for a, b in enumerate(order))
                yield Seen("axes exchanged", text, "Compare the order of the axes.", 15 + steps / 10, weak=True)


def _taken(e: np.ndarray, g: np.ndarray) -> Iterator[Seen]:
    for axis in range(e.ndim):
        along = f" along axis {axis}" if e.ndim > 1 else ""
        for words, function in TAKEN:
            found = function(e, axis)
            if found.shape == g.shape and same(found, g):
                text = f"the result is {words} of the right one{along}"
                yield Seen("an axis is gone", text, "Look at an index or `axis=` that takes an axis away.", 15)
