"""Inputs on which a condition is tried that was found on others: small changes of the cases, and new random ones.

Nothing is found with them. What was found on the cases and on ``more_cases`` is dropped if it is not so on these.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from .attempt import Outcome
from .compare import equal
from .more_cases import allowed, more_cases
from .spec import Case, Exercise

SEEDS = range(11, 15)  # of other random cases than those of ``more_cases``
EACH = 24  # inputs that are made in each way, at most
STEPS = (3, 5)  # one argument of the case so many places further on
FEW = 4  # different numbers in all cases: then no others are allowed
MOST = 120  # inputs in all


@functools.lru_cache(maxsize=256)
def fresh_cases(spec: Exercise) -> tuple[tuple[Case, Outcome], ...]:
    """Further inputs with their right outcomes, on which the solution and the oracle agree.

    None is a case, or one of ``more_cases``.
    """
    if not spec.keeps_to_memory:
        return ()
    known = [case for case, _ in more_cases(spec)]
    return tuple(islice(allowed(spec, _made(spec), known), MOST))


def _made(spec: Exercise) -> Iterator[Case]:
    """One of each way in turn, so that a limit cuts all of them alike."""
    cases = spec.all_cases()
    for turn in zip_longest(_some(_drawn(spec, cases)), _some(_mixed(cases)), _changed(cases)):
        yield from [case for case in turn if case is not None]


def _some(cases: list[Case]) -> list[Case]:
    """At most ``EACH`` of them, spread over all."""
    return cases[:: max(1, -(-len(cases) // EACH))]


def _drawn(spec: Exercise, cases: list[Case]) -> list[Case]:
    found = []
    for seed in SEEDS:
        new = spec.cases(np.random.default_rng(seed))
        found += [case for case, old in zip(new, cases) if not equal(case, old)]
    return found


def _mixed(cases: list[Case]) -> list[Case]:
    """Cases with one argument of another case."""
    width = min(map(len, cases))
    if width < 2:
        return []
    return [
        (*one[:i], two[i], *one[i + 1 :])
        for step in STEPS
        for one, two in zip(cases, cases[step:])
        for i in range(width)
        if type(one[i]) is type(two[i])
    ]


def _changed(cases: list[Case]) -> list[Case]:
    """Cases with one argument changed a little, or all arrays of one length cut to their first row."""
    pools = [Pool(column) for column in zip(*cases)]
    by_argument = [
        [(*case[:i], new, *case[i + 1 :]) for case in cases for new in pool.changed(case[i])]
        for i, pool in enumerate(pools)
    ]
    shorter = [cut for cut in map(_cut, cases) if cut]
    groups = [_some(group) for group in [*by_argument, shorter]]
    return [case for turn in zip_longest(*groups) for case in turn if case is not None]


def _cut(case: Case) -> Case:
    """The case with the first row alone of each array that has as many as the first one."""
    lengths = [len(part) for part in case if isinstance(part, np.ndarray) and part.ndim]
    if not lengths or lengths[0] < 2:
        return ()
    return tuple(
        part[:1].copy() if isinstance(part, np.ndarray) and part.ndim and len(part) == lengths[0] else part
        for part in case
    )


class Pool:
    """What an argument is in the cases, and values that are like them."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values
        self.whole = sorted({x for value in values for x in _whole(value)})
        arrays = [value for value in values if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size]
        flat = np.concatenate([value.reshape(-1).astype(float) for value in arrays]) if arrays else np.zeros(1)
        flat = flat[np.isfinite(flat)]
        self.known = np.unique(flat)
        self.least = float(np.min(np.abs(flat[flat != 0]), initial=np.inf))

    def has(self, new: np.ndarray) -> bool:
        """Whether an array has numbers like those of the cases: the same few ones, or none beyond their range."""
        if len(self.known) <= FEW:
            return bool(np.isin(new, self.known).all())
        size = np.abs(new[new != 0])
        low, high = self.known[0], self.known[-1]
        inside = low <= new.min() and new.max() <= high and bool((size >= self.least).all())
        return bool(inside and (0 in self.known or new.all()))

    def changed(self, value: Any) -> Iterator[Any]:
        """The value with a small change, in different ways."""
        if type(value) is int:
            yield from (new for new in (value + 1, value - 1, value // 2) if new != value)
        elif isinstance(value, tuple) and value and all(type(part) is int for part in value):
            yield from self._of_integers(value)
        elif isinstance(value, list) and len(value) > 1:
            yield from (value[1:], value[:-1], value[:1], value[::-1])
        elif isinstance(value, dict) and len(value) > 1:
            yield from self._of_dict(value)
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size and np.isfinite(value).all():
            flat = value.copy()
            flat.reshape(-1)[0] = 0
            yield from (new for new in (-value, value / 2, flat) if self.has(new))

    def _of_integers(self, value: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for i, old in enumerate(value[:4]):
            for new in self.whole[:3] if old in self.whole[3:] else self.whole[-2:]:
                if new != old:
                    yield (*value[:i], new, *value[i + 1 :])
        if () in self.values or len({len(other) for other in self.values}) > 1:
            yield value[1:]
            yield value[:-1]

    def _of_dict(self, value: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
        items = list(value.items())
        yield dict(items[1:])
        yield dict(items[:-1])
        yield dict(items[:1])
        yield dict(reversed(items))
        if type(items[0][1]) is type(items[-1][1]):
            (one, x), *most, (two, y) = items
            yield dict([(one, y), *most, (two, x)])
        for key, inner in items[:3]:
            if isinstance(inner, dict | list):
                yield from ({**value, key: new} for new in self.changed(inner))


def _whole(value: Any) -> list[int]:
    """The integers of a tuple."""
    return [x for x in value if type(x) is int] if isinstance(value, tuple) else []
