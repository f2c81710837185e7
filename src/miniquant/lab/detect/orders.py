"""Where the wrong values of an array are: the right ones turned around, or only some places wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np

from .seen import Seen

CLOSE = 1e-6  # relative: results that were computed in another order of operations
LAST = 1e-14  # relative: what is left of the order of operations in float64
NEVER = (0.0, 0.0)  # a limit that nothing passes
_LIMIT: ContextVar[tuple[float, float] | None] = ContextVar("limit", default=None)  # of the check: relative, absolute


def closely(detector: Callable[[], Iterator[Seen]], right: Any, tolerance: float) -> Iterator[Seen]:
    """What a detector says; what is not so for the comparison of the check is said to be so but for the last digits.

    What is so for it, too, is said in both ways: other pairs may show only the second.
    """
    found = list(detector())
    if not found:
        return
    kind = getattr(right, "dtype", float)
    digits = float(np.finfo(kind).eps) if isinstance(kind, np.dtype) and kind.kind == "f" else LAST
    exact = _said_under((min(CLOSE, max(LAST, digits)), tolerance), detector)
    plain = _said_under(NEVER, detector)  # without any comparison
    for seen in found:
        if seen.text in exact or seen.text in plain:
            yield seen
        if seen.text not in plain:
            more = 0.5 * (seen.text in exact)
            yield replace(seen, text=f"but for the last digits, {seen.text}", rank=seen.rank + more)


def _said_under(limit: tuple[float, float], detector: Callable[[], Iterator[Seen]]) -> set[str]:
    token = _LIMIT.set(limit)
    try:
        return {seen.text for seen in detector()}
    finally:
        _LIMIT.reset(token)


def passes(related: Any, right: Any) -> bool:
    """Whether values made from the wrong ones are right for the check; if that is not asked now, yes."""
    limit = _LIMIT.get()
    return limit is None or same(np.asarray(related, float), np.asarray(right, float))


def same(a: np.ndarray, b: np.ndarray, tolerance: float = CLOSE) -> bool:
    """Whether two arrays of numbers are equal but for their last digits."""
    limit = _LIMIT.get() or (tolerance, 0.0)
    return limit is not NEVER and near(a, b, *limit)


def near(a: np.ndarray, b: np.ndarray, relative: float, absolute: float = 0.0) -> bool:
    """What ``np.allclose`` says of two arrays of floats, several times as fast: it is asked thousands of times.

    The first two values decide most questions.
    """
    if a.shape != b.shape:
        return bool(np.allclose(a, b, rtol=relative, atol=absolute))
    if not a.size:
        return True
    x, y = a.item(0), b.item(0)
    if not (x == y or (math.isfinite(y) and abs(x - y) <= absolute + relative * abs(y))):
        return False
    with np.errstate(all="ignore"):
        alike = (np.abs(a - b) <= absolute + relative * np.abs(b)) & np.isfinite(b)
        return bool((alike | (a == b)).all())


def told_apart(e: np.ndarray, g: np.ndarray) -> bool:
    """Whether floats differ where these numbers do: not so of all integers beyond 2**53."""
    if e.dtype.kind == g.dtype.kind == "f":
        return True
    if "f" in (e.dtype.kind, g.dtype.kind):
        whole = (g if e.dtype.kind == "f" else e).astype(float)
        return bool((np.abs(whole) <= 2.0**53).all())
    return bool(((e != g) == (e.astype(float) != g.astype(float))).all())


def in_another_order(e: np.ndarray, g: np.ndarray) -> Iterator[Seen]:
    """The right values in the wrong places."""
    if e.size < 2 or not same(np.sort(e, axis=None), np.sort(g, axis=None)):
        return
    if same(e.reshape(-1)[::-1], g.reshape(-1)):
        yield Seen("reversed", "the right values are in reversed order", "Turn the order around.", 12)
    for axis in range(e.ndim) if e.ndim > 1 else ():
        if same(np.flip(e, axis), g):
            yield Seen(
                "reversed", f"the right values are in reversed order along axis {axis}", "Turn the order around.", 13
            )
    if same(np.flip(e, -1), g):
        yield Seen("reversed", "each row is in reversed order", "Turn the order around.", 12.5)
    if e.ndim == 2 and e.size == g.size and same(e.T.reshape(e.shape), g):
        yield Seen(
            "transposed",
            "the right values stand as if they were read by columns in place of rows",
            "Look at where you transpose or reshape.",
            12,
        )
    if e.ndim == 1 and same(np.sort(e), g):
        yield Seen("sorted", "the right values are sorted", "Keep the order of the input.", 13)
    if e.ndim >= 1 and e.shape[-1] > 2:  # two values are in reversed order then
        for shift in (1, -1):
            if same(np.roll(e, shift, axis=-1), g):
                yield Seen("shifted", "the right values are moved by one place", "Look at where the count begins.", 14)
    flat_e, flat_g = e.reshape(-1), g.reshape(-1)
    if e.size % 2 == 0 and e.size > 2:
        if same(flat_e.reshape(-1, 2)[:, ::-1].reshape(-1), flat_g):
            yield Seen(
                "pairs exchanged", "the two values of each pair are exchanged", "Look at which one comes first.", 12
            )
        if same(np.concatenate([flat_e[::2], flat_e[1::2]]), flat_g) or same(
            flat_e.reshape(2, -1).T.reshape(-1), flat_g
        ):
            yield Seen(
                "halves and pairs mixed up",
                "the right values are there, taken by pairs in place of halves or the other way round",
                "Look at which values belong together.",
                12.5,
                weak=True,  # so it is by chance where a matrix of two rows is read column by column
            )
    yield from _in_blocks(flat_e, flat_g, e.shape)
    yield Seen(
        "another order", "the right values are there, in another order", "Compare the order with the docstring.", 26
    )


def _in_blocks(e: np.ndarray, g: np.ndarray, shape: tuple[int, ...]) -> Iterator[Seen]:
    """The right values in another order inside each row, or inside each block of some length."""
    lengths = [("each row", shape[-1])] if len(shape) > 1 else []
    lengths += [(f"each block of {n} values", n) for n in (64, 32, 16, 8)]
    for words, n in lengths:
        if n < 4 or n % 2 or e.size % n or (len(shape) > 1 and shape[-1] % n):
            continue
        a, b = e.reshape(-1, n), g.reshape(-1, n)
        if same(np.sort(a), np.sort(b)):
            if same(a[:, ::-1], b):
                yield Seen("reversed", f"{words} is in reversed order", "Turn the order around.", 13)
            halves = [np.concatenate([a[:, ::2], a[:, 1::2]], axis=1), a.reshape(-1, 2, n // 2).transpose(0, 2, 1)]
            if any(same(one.reshape(-1, n), b) for one in halves):
                text = f"in {words}, values that are neighbours stand half of it apart, or the other way round"
                yield Seen("halves and pairs mixed up", text, "Look at which two values share a byte.", 12)


def in_some_places(e: np.ndarray, g: np.ndarray) -> Iterator[Seen]:
    """Wrong values in places that have something in common."""
    differs = e != g
    if differs.all() or not differs.any() or e.size < 2:  # within the tolerance, with another dtype, none differs
        return
    flat = np.flatnonzero(differs.reshape(-1))
    first = int(flat[0])
    if len(flat) == e.size - first and first and not g.reshape(-1)[first:].any():
        yield Seen(
            "only the beginning is there",
            "the first values are right, and all after them are 0",
            "Look at where the loop ends.",
            20,
        )
    if len(flat) == e.size - first and first:
        yield Seen(
            "wrong from some place on",
            "the first values are right, and all after them are wrong",
            "Look at what changes from one value or block to the next.",
            34,
        )
    if len(flat) == 1:
        if first == e.size - 1:
            yield Seen("the last value", "only the last value is wrong", "Look at where the loop ends.", 28)
        elif first == 0:
            yield Seen("the first value", "only the first value is wrong", "Look at where the loop begins.", 28)
    if e.ndim > 1:
        for axis, word in ((0, "row" if e.ndim == 2 else "part"), (e.ndim - 1, "column")):
            lines = np.flatnonzero(differs.any(axis=tuple(i for i in range(e.ndim) if i != axis)))
            if len(lines) == 1 and e.shape[axis] > 1:
                name = {0: "first", e.shape[axis] - 1: "last"}.get(int(lines[0]), "")
                if name:
                    yield Seen(
                        f"the {name} {word}",
                        f"only the {name} {word} is wrong",
                        f"Look at the {name} step of the loop.",
                        27,
                    )
            elif len(lines) == e.shape[axis] - 1 and 0 not in lines and e.shape[axis] > 2:
                yield Seen(
                    f"all {word}s but the first",
                    f"only the first {word} is right",
                    "Is something used for all that belongs to the first alone?",
                    27,
                )
    if e.ndim == 2 and e.shape[0] == e.shape[1] and (differs == np.eye(len(e), dtype=bool)).all():
        yield Seen("the diagonal", "only the diagonal is wrong", "Look at what is added to the diagonal.", 26)
    if (e[differs] == 0).all():
        yield Seen(
            "zeros are wrong", "only values that must be 0 are wrong", "Treat a scale or a value of 0 apart.", 29
        )
    if (e[differs] > 0).all() and (e[~differs] <= 0).all():
        if (e < 0).any():
            yield Seen(
                "positive values are wrong",
                "exactly the positive values are wrong",
                "Work one positive value by hand.",
                30,
            )
        else:
            yield Seen("all but the zeros", "only the values that must be 0 are right", "", 46)
    if (g[differs] == 0).all():
        yield Seen(
            "zeros in place of values",
            "the wrong values are all 0, and the others are right",
            "Look for what sets them to 0, or never sets them.",
            31,
        )
    largest = np.abs(e) == np.abs(e).max()
    if (largest | ~differs).all() and e.size > 3 and e[~largest].any():
        yield Seen(
            "the largest value",
            "only values of the largest size are wrong",
            "Look at the ends of the range, and at clipping.",
            32,
        )
