"""In which places of an array the values are wrong, and what stands there: both are looked for at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .numbers import settled
from .orders import passes, same, told_apart
from .seen import Seen, exactly, number

Mask = tuple[str, np.ndarray]
LARGEST = 20_000  # values; a larger array is left alone


def of_patterns(
    names: tuple[str, ...], case: tuple[Any, ...], expected: Any, e: Any, g: Any, tolerance: float = 0.0
) -> Iterator[Seen]:
    """What is true of the wrong values in an array: where they stand, and how they come from the right ones.

    ``e`` and ``g`` are two arrays of one shape; ``expected`` is the whole right result, of which ``e`` may be a part.
    """
    if not isinstance(e, np.ndarray) or not isinstance(g, np.ndarray) or e.shape != g.shape or not 1 < e.size < LARGEST:
        return
    if e.dtype.kind not in "iuf" or g.dtype.kind not in "iuf" or not told_apart(e, g):
        return
    with np.errstate(all="ignore"):
        e, g = e.astype(float), g.astype(float)
        g = settled(e, g, tolerance)
        wrong = ~((e == g) | (np.isnan(e) & np.isnan(g)))
        if not wrong.any() or not np.isfinite(e).all():
            return
        inputs = _inputs(names, case, expected)
        relations = list(_relations(e, g, wrong, inputs))
        if wrong.all():
            for text, rank in relations:
                yield Seen("other values", f"every value is {text}", "", rank + (6 if rank < 27 else 14))
            yield from _lines(e, g)
            return
        exact, partly = [], []
        for words, mask in (*_masks(e, inputs), *_columns(names, case, e)):
            if mask.shape == e.shape and mask.any() and not mask.all():
                if (mask == wrong).all():
                    exact.append(words)
                elif not (wrong & ~mask).any() and mask.sum() <= 0.5 * e.size:
                    partly.append(words)
        for order, words in enumerate(exact):
            far = 0.02 * order + 0.5 * words.startswith(("in ", "at "))
            yield Seen(
                "wrong in some places", f"values are wrong exactly {words}", "Work one of them by hand.", 27 + far
            )
            for text, rank in relations:
                said = f"values are wrong exactly {words}: each is {text}"
                yield Seen("wrong in some places", said, "", rank + far)
        c = g[wrong].flat[0]
        for words, mask in _masks(e, inputs) if (g[wrong] == c).all() and wrong.sum() > 1 else ():
            if mask.shape == e.shape and not mask.all() and (mask & (e != c) == wrong).all() and (mask != wrong).any():
                said = (
                    f"every value {words.removeprefix('where ')} is {number(c)}"
                    if words.startswith(("in ", "at "))
                    else ""
                )
                if said and (g[~mask] == e[~mask]).all():
                    yield Seen("wrong in some places", f"{said}, and the others are right", "", 17)
        for words in partly:
            yield Seen("wrong in some places", f"values are wrong only {words}, and not all of these", "", 36)
            for text, rank in relations:
                yield Seen(
                    "wrong in some places", f"values are wrong only {words}: each wrong one is {text}", "", rank + 3
                )
        for text, rank in relations:
            yield Seen("other values", f"each wrong value is {text}", "", rank + (5 if rank < 27 else 14))
        yield from _lines(e, g)


def _inputs(names: tuple[str, ...], case: tuple[Any, ...], expected: Any) -> dict[str, np.ndarray]:
    """The arrays that come in, and the other parts of the right result, by name."""
    found = {
        f"`{name}`": value.astype(float)
        for name, value in zip(names, case)
        if isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and value.size <= LARGEST
    }
    for field in getattr(expected, "_fields", ()):
        part = getattr(expected, field)
        if isinstance(part, np.ndarray | np.floating) and np.asarray(part).dtype.kind == "f":
            found[f"the right {field}"] = np.asarray(part, float)
    return found


def _relations(
    e: np.ndarray, g: np.ndarray, wrong: np.ndarray, inputs: dict[str, np.ndarray]
) -> Iterator[tuple[str, float]]:
    """What the wrong values are: (words, rank)."""
    a, b = e[wrong], g[wrong]
    if not np.isfinite(b).all():
        if np.isnan(b).all():
            yield "NaN", 15
        elif np.isinf(b).all():
            yield "infinite", 15
        elif not np.isfinite(b).any():
            yield "infinite or NaN", 15
        return
    if (b == b[0]).all() and (len(b) > 1 or b[0] in (0, 1, -1)):
        yield f"{number(b[0])}", 16
    if len(a) > 1 and np.ptp(a) > 0:
        yield from _of_right_values(a, b)
    yield from _of_neighbours(e, g, wrong)
    for name, value in inputs.items():
        if value.shape == e.shape and not same(value, e) and same(value[wrong], b):
            yield f"the value of {name} in its place", 17
    if (np.abs(b - a) == 1).all() and (a == np.rint(a)).all() and len(a) > 2:
        way = "too large by 1" if (b > a).all() else "too small by 1" if (b < a).all() else "off by 1"
        yield way, 20
        if (np.abs(b) == np.abs(a) + 1).all():
            yield "farther from 0 by 1", 19
        elif (np.abs(b) == np.abs(a) - 1).all():
            yield "closer to 0 by 1", 19
    if (b > a).all():
        yield "too large", 28
    elif (b < a).all():
        yield "too small", 28
    if (np.abs(b) > np.abs(a)).all():
        yield "too far from 0", 27
    elif (np.abs(b) < np.abs(a)).all():
        yield "too close to 0", 27


def _of_right_values(a: np.ndarray, b: np.ndarray) -> Iterator[tuple[str, float]]:
    """One and the same factor, difference or sign."""
    if same(-a, b):
        yield "the right one with the other sign", 16
    if a.all() and np.allclose(b / a, b[0] / a[0], rtol=2e-4, atol=0) and b[0] > 0:
        factor = float(b[0] / a[0])
        times = factor if factor >= 1 else 1 / factor
        said = exactly(times) if np.allclose(b / a, factor, rtol=1e-6, atol=0) else f"about {number(times)}"
        if "about" not in said and not passes(b / float(said) if factor >= 1 else b * float(said), a):
            said = f"about {said}"
        if abs(factor - 1) > 2e-3:
            yield f"{said} times too {'large' if factor > 1 else 'small'}", 17
    offset = float(b[0] - a[0])
    largest = float(np.abs(a).max())
    if abs(offset) > 1e-4 * largest and np.allclose(b - a, offset, rtol=1e-6, atol=1e-6 * largest):
        by = exactly(abs(offset))
        by = by if "about" in by or passes(b - np.sign(offset) * float(by), a) else f"about {by}"
        yield f"too {'large' if offset > 0 else 'small'} by {by}", 18


def _of_neighbours(e: np.ndarray, g: np.ndarray, wrong: np.ndarray) -> Iterator[tuple[str, float]]:
    """Right values of other places."""
    if wrong.sum() < 2:
        return
    lines = [(0, "row" if e.ndim > 1 else "value")] + [(e.ndim - 1, "value in its row")] * (e.ndim > 1)
    for axis, word in lines:
        if e.shape[axis] < 2:
            continue
        for shift, way in ((1, "before"), (-1, "after")):
            other = np.roll(e, shift, axis)
            end = np.take(wrong, 0 if shift > 0 else -1, axis)  # there is none before the first, or after the last
            if not end.any() and (other[wrong] == g[wrong]).all():
                place = "in the row" if word == "row" else "one place"
                yield f"the right value {place} {way} it", 16
        for end, way in ((0, "first"), (-1, "last")):
            other = np.broadcast_to(np.take(e, [end], axis), e.shape)
            if (other[wrong] == g[wrong]).all():
                yield f"that of the {way} {word}", 16


def _masks(e: np.ndarray, inputs: dict[str, np.ndarray]) -> Iterator[Mask]:
    """Places by where they are and by what stands there; the words follow "values are wrong exactly"."""
    for axis in dict.fromkeys((0, e.ndim - 1)):
        index = np.indices(e.shape)[axis]
        n = e.shape[axis]
        word = ("row" if axis == 0 else "column") if e.ndim > 1 else "place"
        at = "in" if e.ndim > 1 else "at"
        if n > 1:
            yield f"{at} the first {word}", index == 0
            yield f"{at} the last {word}", index == n - 1
            yield f"{at} all {word}s but the first", index > 0
            yield f"{at} all {word}s but the last", index < n - 1
        if n > 5:
            yield f"{at} the {word}s 1, 3, 5 …, counted from 0", index % 2 == 1
            yield f"{at} the {word}s 0, 2, 4 …, counted from 0", index % 2 == 0
    yield from _groups(e, inputs)
    yield "where the right value is negative", e < 0
    yield "where the right value is positive", e > 0
    yield "where the right value is 0", e == 0
    yield "where the right value is not 0", e != 0
    if np.ptp(e) > 0:
        yield "where the right value is the largest", e == e.max()
        yield "where the right value is the smallest", e == e.min()
        yield "where the right value is farthest from 0", np.abs(e) == np.abs(e).max()
    for name, value in inputs.items():
        for spread in _spread(value, e.shape):
            yield f"where {name} is 0", spread == 0
            yield f"where {name} is negative", spread < 0
            yield f"where {name} is positive", spread > 0
            if value.ndim and np.ptp(value) > 0:
                yield f"where {name} is largest", spread == value.max()
                yield f"where {name} is not largest", spread != value.max()
                yield f"where {name} is not its first value", spread != value.flat[0]
    yield from _quotients(e, inputs)


def _columns(names: tuple[str, ...], case: tuple[Any, ...], e: np.ndarray) -> Iterator[Mask]:
    """The columns beside one whose number is an argument."""
    if e.ndim != 2:
        return
    column = np.indices(e.shape)[1]
    for name, at in zip(names, case):
        if isinstance(at, int) and not isinstance(at, bool) and 0 <= at < e.shape[1]:
            yield f"in column `{name}`", column == at
            yield f"in the columns after column `{name}`", column > at
            yield f"in the columns before column `{name}`", column < at
            yield f"in the columns after column `{name}` + 1", column > at + 1
            yield f"in all columns but column `{name}`", column != at


def _groups(e: np.ndarray, inputs: dict[str, np.ndarray]) -> Iterator[Mask]:
    """The groups of a row, as many as another matrix has columns."""
    if e.ndim != 2:
        return
    for value in inputs.values():
        if value.ndim != 2 or len(value) != len(e):
            continue
        if 1 < value.shape[1] < e.shape[1] and not e.shape[1] % value.shape[1]:
            size = e.shape[1] // value.shape[1]
            column = np.indices(e.shape)[1]
            yield "in the first group of each row", column < size
            yield "in all groups but the first of each row", column >= size
            yield "in the last group of each row", column >= e.shape[1] - size
            if size > 1:
                yield "at the first value of each group", column % size == 0
                yield "at the last value of each group", column % size == size - 1
                yield "at all values of a group but the first", column % size > 0
                last = (column % size == size - 1) & (column < e.shape[1] - size)
                yield "at the last value of each group but the last", last


def _spread(value: np.ndarray, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """An input for each value of the result: in its place, by rows, by groups."""
    if value.shape == shape:
        yield value
    elif value.ndim == 0:
        yield np.full(shape, value)
    elif len(shape) == 2 and value.shape == shape[:1]:
        yield np.broadcast_to(value[:, None], shape)
    elif len(shape) == 2 and value.ndim == 2 and len(value) == shape[0] and not shape[1] % max(value.shape[1], 1):
        yield np.repeat(value, shape[1] // value.shape[1], axis=1)


def _quotients(e: np.ndarray, inputs: dict[str, np.ndarray]) -> Iterator[Mask]:
    """Quotients of two inputs that end in .5, or that lie beyond the right values."""
    if (e != np.rint(e)).any():
        return
    for a in inputs.values():
        for value in inputs.values():
            if a is value or a.shape != e.shape:
                continue
            for b in _spread(value, e.shape):
                quotient = np.abs(np.divide(a.astype(np.float32), b.astype(np.float32)))
                if np.isfinite(quotient[b != 0]).all() and same(np.rint(quotient), np.abs(e), 0.02):
                    yield "where the quotient ends in exactly .5", quotient % 1 == 0.5
                    yield (
                        "where the quotient is not whole and does not end in exactly .5",
                        (quotient % 1 != 0) & (quotient % 1 != 0.5),
                    )
                if (b != 0).any():
                    yield "where the quotient lies beyond the largest integer", np.rint(quotient) > np.abs(e).max()


def _lines(e: np.ndarray, g: np.ndarray) -> Iterator[Seen]:
    """Each row, or each column, has a factor of its own."""
    if e.ndim != 2 or min(e.shape) < 2 or not np.isfinite(g).all():
        return
    for axis, word in ((1, "row"), (0, "column")):
        right = _own_factor(e, g, axis)
        if right is not None:
            what = "the right one" if same(right, g) else "nearly the right one"
            yield Seen(
                f"a factor for each {word}",
                f"each {word} is {what} times a number of its own",
                "Look at which scale or divisor belongs to which row.",
                26 if axis else 26.5,
            )


def _own_factor(e: np.ndarray, g: np.ndarray, axis: int) -> np.ndarray | None:
    """Each line of the right values times a number of its own, if this is nearly what the wrong ones are."""
    top, bottom = (g * e).sum(axis=axis), (e * e).sum(axis=axis)
    factors = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1), 1)
    right: np.ndarray = np.expand_dims(factors, axis) * e
    several = len(np.unique(np.round(factors[bottom > 0], 6))) > 1 and ((e != 0).sum(axis=axis) > 1).any()
    return right if several and np.allclose(right, g, rtol=1e-4, atol=0) else None
