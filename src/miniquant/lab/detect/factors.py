"""A result that is a product of two arrays, such as integers and scales: which of the two is wrong, and how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..verdict import Call, Facts
from .numbers import array_of, of_numbers
from .orders import same
from .places import moved_by, of_places
from .seen import VAGUE, Seen

CLOSE = 2e-6


def of_factors(facts: Facts, call: Call, expected: Any, got: Any) -> Iterator[Seen]:
    """What a wrong product shows: the one factor with the right other one."""
    if facts.spec.factors is None:
        return
    e, g = array_of(expected), array_of(got)
    if e is None or g is None or e.size != g.size:
        return
    (one, a), (two, b) = facts.spec.factors(*call.case).items()
    a, b = np.asarray(a, float), np.asarray(b, float)
    if a.size != e.size or not np.isfinite(g.astype(float)).all():
        return
    product = g.astype(float).reshape(a.shape)
    with np.errstate(all="ignore"):
        if a.ndim == 3:
            yield from of_places(e.reshape(a.shape), product, "group")
        yield from _integers(one, two, a, b, product)
        yield from _scales(one, two, a, b, product)


def _integers(one: str, two: str, a: np.ndarray, b: np.ndarray, product: np.ndarray) -> Iterator[Seen]:
    """Other integers with the right scales."""
    wrong = _whole(a, b, product)
    if wrong is None:
        return
    right = a.astype(np.int64)
    yield Seen(
        f"{one} wrong",
        f"the result is what {two} give with other {_bare(one)} than the right ones",
        f"Look at how you read {one}.",
        40,
    )
    for seen in _related(right, wrong):
        text = f"the result is what {two} give with other {_bare(one)}: in {one}, {seen.text}"
        yield Seen(f"{one}: {seen.title}", text, seen.cure, seen.rank + 2, weak=seen.weak)
    flat_right, flat_wrong = right.reshape(-1), wrong.reshape(-1)
    for each, times in ((1, ""), (2, "twice "), (4, "four times ")):
        for words, x, y in (("before", flat_right, flat_wrong), ("further on", flat_wrong, flat_right)):
            if moved_by(x, y, each * b.size):
                text = f"the result is what {two} give with other {_bare(one)}: each is the one that belongs"
                text += f" as many places {words} as {times}the number of {_bare(two)}, where there is one"
                yield Seen(f"{one} moved", text, "Count the bytes of the scales.", 14)


def integers_of(facts: Facts, call: Call) -> tuple[str, np.ndarray, np.ndarray] | None:
    """The first factor, and what it must have been for the student's result if the second one is right."""
    if facts.spec.factors is None:
        return None
    g = array_of(call.outcome.result)
    (one, a), (_, b) = facts.spec.factors(*call.case).items()
    a, b = np.asarray(a, float), np.asarray(b, float)
    if g is None or g.size != a.size or not np.isfinite(g.astype(float)).all():
        return None
    with np.errstate(all="ignore"):
        wrong = a if call.problem is None else _whole(a, b, g.astype(float).reshape(a.shape))
    known = np.broadcast_to(b, a.shape) != 0  # times 0, every integer gives the same
    return None if wrong is None else (one, a.astype(np.int64)[known], wrong.astype(np.int64)[known])


def _whole(a: np.ndarray, b: np.ndarray, product: np.ndarray) -> np.ndarray | None:
    """The whole numbers that give the product with the factor ``b``; ``None`` if none do, or the right ones."""
    wide = np.broadcast_to(b, a.shape)
    if (product[wide == 0] != 0).any() or not wide.any():
        return None
    mine = np.where(wide == 0, a, product / np.where(wide == 0, 1, wide))
    whole: np.ndarray = np.rint(mine)
    if not np.allclose(mine, whole, rtol=CLOSE, atol=CLOSE * max(1, np.abs(a).max())) or same(whole, a):
        return None
    return whole.astype(np.int64)


def _scales(one: str, two: str, a: np.ndarray, b: np.ndarray, product: np.ndarray) -> Iterator[Seen]:
    """Other scales with the right integers."""
    if (product[a == 0] != 0).any():
        return
    wide = np.broadcast_to(b, a.shape)
    mine = np.where(a == 0, np.nan, product / np.where(a == 0, 1, a))
    known = mine[~np.isnan(mine)]
    if not known.size or same(known, wide[~np.isnan(mine)]):
        return
    axis = tuple(i for i in range(a.ndim) if b.shape[i] == 1)
    low = np.where(np.isnan(mine), np.inf, mine).min(axis=axis, keepdims=True)
    high = np.where(np.isnan(mine), -np.inf, mine).max(axis=axis, keepdims=True)
    empty = low > high
    low, high = np.where(empty, b, low), np.where(empty, b, high)
    if np.allclose(low, high, rtol=CLOSE, atol=0):
        yield Seen(
            f"{two} wrong",
            f"the result is what {one} give with other {_bare(two)} than the right ones",
            f"Look at how you read {two} and line them up.",
            40,
        )
        flat_e, flat_g = b.reshape(-1), low.reshape(-1)
        for seen in _related(flat_e, flat_g):
            text = f"the result is what {one} give with other {_bare(two)}: in {two}, {seen.text}"
            yield Seen(f"{two}: {seen.title}", text, seen.cure, seen.rank + 2, weak=seen.weak)
        if len(flat_e) > 1 and len(set(flat_e.tolist())) > 1:
            for index, word in ((0, "first"), (-1, "last")):
                if same(flat_g, np.full_like(flat_g, flat_e[index])):
                    text = f"{one} are right, and all are multiplied by the {word} one of {two}"
                    yield Seen("one scale for all", text, "Each has its own scale.", 12)
            if b.ndim == 3 and b.shape[1] > 1:
                for index, word in ((0, "first"), (-1, "last")):
                    if same(low, np.broadcast_to(b[:, [index]], b.shape)):
                        text = f"{one} are right, and each row is multiplied by the {word} of its scales"
                        yield Seen("one scale a row", text, "Each group has its own scale.", 12)
            if b.ndim == 3 and b.shape[0] > 1:
                for index, word in ((0, "first"), (-1, "last")):
                    if same(low, np.broadcast_to(b[[index]], b.shape)):
                        text = f"{one} are right, and all rows are multiplied by the scales of the {word} row"
                        yield Seen("the scales of one row", text, "Each row has scales of its own.", 12)
            if all(np.isclose(x, flat_e, rtol=CLOSE, atol=0).any() for x in flat_g):
                some = "some of them" if np.isclose(flat_g, flat_e, rtol=CLOSE, atol=0).any() else "they"
                text = f"{one} are right, and {some} are multiplied by {two} that belong to others"
                yield Seen("scales of others", text, "Look at how integers and scales are lined up.", 22)
        return
    if all(np.isclose(x, b, rtol=CLOSE, atol=0).any() for x in np.unique(known)):
        text = f"{one} are right, and some of them are multiplied by a scale that belongs to others"
        yield Seen("scales of others", text, "Look at which integers share a scale.", 22)


def _related(right: np.ndarray, wrong: np.ndarray) -> Iterator[Seen]:
    yield from (seen for seen in of_numbers(right, wrong, {}) if seen.rank < VAGUE)
    yield from of_places(right, wrong)


def _bare(words: str) -> str:
    return words.removeprefix("the ")
