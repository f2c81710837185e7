"""Wrong values in places that have something in common, and how they are related to the right ones there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .numbers import settled
from .orders import passes, same, told_apart
from .seen import Seen, exactly

FAR = 4  # places by which values may have moved


def of_shapes(e: np.ndarray, g: np.ndarray) -> Iterator[Seen]:
    """A result with as many axes as the right one, and other lengths: which part of the right one it is."""
    if e.ndim != g.ndim or not e.ndim:
        return
    half = e.shape[-1] // 2
    parts: list[tuple[str, np.ndarray]] = [
        ("the values at even indices are", e[..., ::2]),
        ("the values at odd indices are", e[..., 1::2]),
        ("the first half of each row is", e[..., :half]),
        ("the second half of each row is", e[..., half:]),
        ("the first row is", e[:1]),
        ("the last row is", e[-1:]),
        ("the first column is", e[..., :1]),
        ("all rows but the last are", e[:-1]),
        ("all columns but the last are", e[..., :-1]),
        ("all rows but the first are", e[1:]),
        ("all columns but the first are", e[..., 1:]),
    ]
    for words, part in parts if e.ndim > 1 else [parts[0], parts[1]]:
        if part.shape == g.shape and part.size and np.array_equal(part, g):
            yield Seen("only a part", f"only {words} there, and right", "Look at what is missing.", 11)
    off = [axis for axis in range(e.ndim) if e.shape[axis] != g.shape[axis]]
    if len(off) == 1:
        (axis,) = off
        name = "the last axis" if axis == e.ndim - 1 else f"axis {axis}"
        a, b = e.shape[axis], g.shape[axis]
        cure = "Work the shapes of the smallest case by hand."
        for times, words in ((2, "twice as long as"), (4, "four times as long as"), (8, "eight times as long as")):
            if b == times * a:
                yield Seen("another shape", f"{name} is {words} it must be", cure, 28)
        for times, words in ((2, "half"), (4, "a quarter"), (8, "an eighth")):
            if a == times * b:
                yield Seen("another shape", f"{name} is {words} of what it must be", cure, 28)
        if abs(a - b) <= 2:
            text = f"{name} has {abs(a - b)} too {'many' if b > a else 'few'}"
            yield Seen("another shape", text, cure, 28)
        yield Seen("another shape", f"of the lengths, only that of {name} is wrong", cure, 32)


def of_places(expected: Any, got: Any, unit: str = "row", tolerance: float = 0.0) -> Iterator[Seen]:
    """Which places hold wrong values, and what stands there; ``unit``: what lies along the last axis."""
    if isinstance(expected, tuple | bytes | str | bool | dict) or isinstance(got, bytes | str | bool | dict):
        return
    try:
        e, g = np.asarray(expected), np.asarray(got)
    except Exception:
        return
    if e.shape != g.shape or e.dtype.kind not in "iuf" or g.dtype.kind not in "iuf" or e.ndim < 1 or e.size < 2:
        return
    if not told_apart(e, g):
        return
    with np.errstate(all="ignore"):
        e, g = e.astype(float), g.astype(float)
        if not np.isfinite(e).all() or not np.isfinite(g).all() or (e == g).all():
            return
        g = settled(e, g, tolerance)
        yield from _moved(e.reshape(-1), g.reshape(-1))
        yield from _repeated(e, g, unit)
        for words, inside in _sets(e, unit):
            for seen in _of_set(e, g, words, inside):
                yield replace(seen, weak=seen.weak or e.size < 4)


def _moved(e: np.ndarray, g: np.ndarray) -> Iterator[Seen]:
    """Every value is one that belongs some places further on; at one end other values come in."""
    weak = len(e) < 8
    for k in range(1, min(FAR, max(1, len(e) // 4)) + 1):
        if len(e) - k < 2:
            return
        places = f"{k} place" + "s" * (k > 1)
        cure = "Look at where the count, or the first byte, begins."
        if same(e[k:], g[:-k]) and len(set(e[k:].tolist())) > 1 + (not weak):
            text = f"each value is the one that belongs {places} further on, where there is one"
            yield Seen("moved", text, cure, 15, weak=weak)
        if same(e[:-k], g[k:]) and len(set(e[:-k].tolist())) > 1 + (not weak):
            text = f"each value is the one that belongs {places} before, where there is one"
            yield Seen("moved", text, cure, 15, weak=weak)


def moved_by(e: np.ndarray, g: np.ndarray, k: int) -> bool:
    """Whether each value is the one that belongs ``k`` places before; not so if only few are left to compare."""
    return 0 < k < len(e) // 2 and same(e[:-k], g[k:]) and len(set(e.tolist())) > 2


def _repeated(e: np.ndarray, g: np.ndarray, unit: str) -> Iterator[Seen]:
    """One right value of each row, or one right row, in the place of all."""
    if e.ndim < 2 or e.size < 4:
        return
    cure = "Look at what changes from one step to the next."
    if e.shape[-1] > 1 and not same(e, np.broadcast_to(e[..., :1], e.shape)):
        for words, part in (("first", e[..., :1]), ("last", e[..., -1:]), ("largest", e.max(axis=-1, keepdims=True))):
            if same(np.broadcast_to(part, e.shape), g):
                yield Seen("repeated", f"all values of a {unit} are equal to the {words} one of the {unit}", cure, 13)
    if e.shape[0] > 1 and not same(e, np.broadcast_to(e[:1], e.shape)):
        for words, part in (("first", e[:1]), ("last", e[-1:]), ("largest", e.max(axis=0, keepdims=True))):
            if same(np.broadcast_to(part, e.shape), g):
                what = "hold the largest values of all rows" if words == "largest" else f"are equal to the {words} one"
                yield Seen("repeated", f"all rows {what}", cure, 13)


def _sets(e: np.ndarray, unit: str = "row") -> Iterator[tuple[str, np.ndarray]]:
    """Sets of places, by the words for them."""
    last = np.broadcast_to(np.arange(e.shape[-1]), e.shape)
    if e.shape[-1] > 1:
        where = f"in each {unit}, " if e.ndim > 1 else ""
        yield "the values at odd indices", last % 2 == 1
        yield "the values at even indices", last % 2 == 0
        yield f"{where}the last value", last == e.shape[-1] - 1
        yield f"{where}the first value", last == 0
        yield f"{where}the first half", last < e.shape[-1] // 2
        yield f"{where}the second half", last >= e.shape[-1] // 2
        if e.shape[-1] > 64:
            yield f"{where}the values after the first 64", last >= 64
    if e.ndim > 1 and e.shape[0] > 1:
        row = np.broadcast_to(np.arange(e.shape[0]).reshape(-1, *[1] * (e.ndim - 1)), e.shape)
        yield "the rows after the first", row > 0
        yield "the last row", row == e.shape[0] - 1
        yield "the first row", row == 0
    yield "the negative values", e < 0
    yield "the positive values", e > 0


def _of_set(e: np.ndarray, g: np.ndarray, words: str, inside: np.ndarray) -> Iterator[Seen]:
    """What is true of the values in a set of places, if all values outside it are right."""
    if inside.all() or not inside.any() or (e != g)[~inside].any():
        return
    a, b = e[inside], g[inside]
    plural = "s" if " values" in words or " rows" in words else ""
    verb = "are" if plural else "is"
    cure = "Work one value of these by hand."
    if (a != b).all():
        yield Seen(f"{words} wrong", f"{words} {verb} wrong, and all others are right", cure, 25)
    else:
        yield Seen(f"only {words}", f"all values that are wrong belong to this: {words}", cure, 43, weak=True)
    if (b == 0).all() and a.any():
        yield Seen(f"{words}: 0", f"{words} {verb} 0, and all others are right", cure, 19)
    last, length = np.indices(e.shape)[-1][inside], e.shape[-1]
    for k, side in ((1, "before"), (-1, "after")):
        there = ((last >= k) & (last - k < length)).all()  # the first value has none before it, the last none after it
        if "ind" in words and there and same(np.roll(e, k, axis=-1)[inside], b):
            text = f"in the place of {words} stand those one index {side}"
            yield Seen("a neighbour", f"{text}; all others are right", cure, 18, weak=len(set(a.tolist())) < 3)
    if " row" in words and "in each" not in words and inside.sum() > 1:
        first = np.broadcast_to(e[:1], e.shape)[inside]
        if same(first, b) and not same(first, a):
            yield Seen("the first row again", f"{words} {verb} equal to the first row", cure, 18)
    if len(a) > 1:
        off = b - a
        if off[0] and same(off, np.full_like(off, off[0])) and abs(off[0]) > 1e-4 * np.abs(a).max():
            side = "large" if off[0] > 0 else "small"
            text = f"{words} {verb} too {side} by {exactly(abs(off[0]))}, and all others are right"
            yield Seen(f"{words}: too {side}", text, cure, 18.5)
        if a.all() and b.all():
            ratio = b / a
            if same(ratio, np.full_like(ratio, ratio[0])) and abs(ratio[0] - 1) > 2e-3:
                if abs(ratio[0] + 1) < 1e-6:
                    text = f"{words} {'have' if plural else 'has'} the opposite sign, and all others are right"
                elif ratio[0] > 0:
                    times, side = (ratio[0], "large") if ratio[0] > 1 else (1 / ratio[0], "small")
                    about = "" if passes(b / times if ratio[0] > 1 else b * times, a) else "about "
                    said = about + exactly(times).removeprefix(about)
                    text = f"{words} {verb} {said} times too {side}, and all others are right"
                else:
                    return
                yield Seen(f"{words}: a factor", text, cure, 18.5)
