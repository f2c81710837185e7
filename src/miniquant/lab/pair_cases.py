"""Pairs of inputs that differ in one thing alone: an input of the cases, and the same one with a small change.

A condition ("wrong where a scale is 0") is said only if such pairs confirm it: where the change makes a right input one
of those, its result must be wrong, and the other way round.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from .attempt import Outcome, attempt, cases_of, expected_of
from .compare import equal
from .fresh_cases import Pool
from .more_cases import SECONDS, is_known, like_the_cases
from .spec import Case, Exercise

MOST = 240  # pairs in all
TRIED = 600  # changes that are tried for them
LARGE = 5000  # values of an array; a larger one is left alone
DEEP = 2  # so deep inside lists and dicts


@dataclass(frozen=True)
class Pair:
    """A changed input with its right outcome, and the number of the case that it was made from."""

    case: Case
    right: Outcome
    number: int


@functools.lru_cache(maxsize=256)
def pair_cases(spec: Exercise) -> tuple[Pair, ...]:
    """Changed cases on which the solution and the oracle agree: good ones of good cases, bad ones of bad ones, too."""
    if not spec.keeps_to_memory:
        return ()
    return tuple(islice(_allowed(spec, islice(_made(spec), TRIED)), MOST))


def changes_of(spec: Exercise, number: int, more: Iterable[Case]) -> Iterator[Pair]:
    """The changes of one case that are allowed, and those of some more inputs made from it."""
    made = _of_case(number, cases_of(spec)[number], pools_of(spec))
    return _allowed(
        spec, (each for turn in zip_longest(made, ((number, case) for case in more)) for each in turn if each)
    )


@functools.lru_cache(maxsize=256)
def pools_of(spec: Exercise) -> tuple[Pool, ...]:
    """What each argument is in the cases."""
    return tuple(Pool(column) for column in zip(*cases_of(spec)))


def pair_of(spec: Exercise, number: int, case: Case) -> Pair | None:
    """An input made from a case, if it is allowed."""
    return next(_allowed(spec, iter([(number, case)])), None)


def _allowed(spec: Exercise, made: Iterator[tuple[int, Case]]) -> Iterator[Pair]:
    is_like, expected = like_the_cases(spec), expected_of(spec)
    refusals = {type(outcome.error) for outcome in expected if outcome.error}
    for number, case in made:
        bad = expected[number].error is not None
        if not bad and not is_like(case):
            continue
        mine = attempt(spec, spec.reference, case, SECONDS)
        if mine.error and type(mine.error) not in refusals:  # the oracle, which takes longer, is not asked
            continue
        right = attempt(spec, spec.oracle, case, SECONDS)
        if right.error or mine.error:
            if type(right.error) is type(mine.error) and is_known(spec, case, None):
                yield Pair(case, right, number)
        elif equal(right.result, mine.result, spec.tolerance) and is_like(case) and is_known(spec, case, right):
            yield Pair(case, right, number)


def _made(spec: Exercise) -> Iterator[tuple[int, Case]]:
    """The changes of each argument in turn, of each case in turn: a limit cuts all of them alike."""
    rows = [_of_case(number, case, pools_of(spec)) for number, case in enumerate(cases_of(spec))]
    for turn in zip_longest(*rows):
        yield from [made for made in turn if made is not None]


def _of_case(number: int, case: Case, pools: tuple[Pool, ...]) -> Iterator[tuple[int, Case]]:
    columns = [_of_argument(number, case, i, pool) for i, pool in enumerate(pools) if i < len(case)]
    for turn in zip_longest(*columns):
        yield from [made for made in turn if made is not None]


def _of_argument(number: int, case: Case, i: int, pool: Pool) -> Iterator[tuple[int, Case]]:
    for new in _changed(case[i], pool):
        if not equal(new, case[i]):
            yield number, (*case[:i], new, *case[i + 1 :])


def _changed(value: Any, pool: Pool, deep: int = 0) -> Iterator[Any]:
    """The value with one change, in different ways; the smaller ones first."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1, value // 2, 2 * value, 0, 1, -value, value + 8, 3 * value)
    elif isinstance(value, float):
        yield from (0.0, -value, value / 2, 2 * value, 1.0, value + 1)
    elif isinstance(value, np.integer):
        info = np.iinfo(value.dtype)
        made = [new for new in _changed(int(value), pool) if info.min <= new <= info.max]
        yield from (type(value)(new) for new in (*made, int(value) ^ 1 << info.bits - 2))
    elif isinstance(value, str):
        yield from (f"{value}é", f"{value}x", value[:-1], f"{value} ", value.upper(), f" {value}", f"{value}\n")
        yield from (f"{value}漢", "", value[::-1], value * 3, f"{value}=", f"{value}.5", f"{value}\u0301")
    elif isinstance(value, bytes):
        yield from _of_bytes(value)
    elif isinstance(value, np.ndarray):
        yield from _of_array(value, pool)
    elif isinstance(value, tuple | list) and deep < DEEP:
        yield from _of_items(value, pool, deep)
    elif isinstance(value, dict) and value and deep < DEEP:
        yield from _of_dict(value, pool, deep)


def _of_bytes(value: bytes) -> Iterator[bytes]:
    half = len(value) // 2
    yield from (value[:half], value[half:], value[:-1], value + value, value[::-1], value + b"\0", value[1:])
    for at in {0, 1, 2, 3, half, len(value) - 1}:
        if 0 <= at < len(value):
            yield value[:at] + bytes([value[at] ^ 0x80]) + value[at + 1 :]
            yield value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
            yield value[:at] + b"\0" + value[at + 1 :]


def _of_array(value: np.ndarray, pool: Pool) -> Iterator[np.ndarray]:
    if value.dtype.kind not in "iuf" or not value.size or value.size > LARGE or not value.ndim:
        return
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        return
    made = [*_other_shapes(value), *_other_values(value)]
    yield from (new for new in made if value.dtype.kind != "f" or (new.size and pool.has(new)))


def _other_shapes(value: np.ndarray) -> Iterator[np.ndarray]:
    n = value.shape[-1]
    yield from (value[:1].copy(), value[..., : n // 2].copy(), value[..., n // 2 :].copy(), value[:-1].copy())
    yield np.concatenate([value, value])
    yield value[::-1].copy()
    if value.dtype == np.uint8:
        yield from (value[:18].copy(), value[:20].copy(), value[: value.shape[0] // 2].copy())


def _other_values(value: np.ndarray) -> Iterator[np.ndarray]:
    def at(place: int, new: Any) -> np.ndarray:
        changed = value.copy()
        changed.reshape(-1)[place] = new
        return changed

    flat = value.reshape(-1)
    yield at(0, 0)
    yield at(-1, 0)
    yield at(int(np.argmax(flat)), 0)
    if value.dtype.kind != "u":
        yield -value
        yield abs(value)
        yield -abs(value)
        farthest = int(np.argmax(abs(flat.astype(float))))
        yield np.where(np.arange(flat.size) == farthest, -flat, flat).reshape(value.shape)
    yield np.full_like(value, flat[0])
    yield np.sort(flat).reshape(value.shape)
    if value.ndim > 1:
        zeros = value.copy()
        zeros[0] = 0
        yield zeros
        columns = value.copy()
        columns[..., 0] = 0
        yield columns
    if value.dtype.kind == "f":
        yield from (value / 2, 2 * value, value / 64, 16 * value, at(0, 1e-5), at(0, flat[-1]), np.rint(value))
    else:
        yield from (at(0, flat[-1]), value // 2, at(-1, flat[0]))


def _of_items(value: Any, pool: Pool, deep: int) -> Iterator[Any]:
    kind = type(value) if type(value) in (list, tuple) else None
    if kind is None or not value:
        return
    yield from (value[1:], value[:-1], value[:1], value[::-1], kind([*value, value[0]]), value * 2)
    for at, item in list(enumerate(value))[:3]:
        for new in islice(_changed(item, pool, deep + 1), 8):
            yield kind([*value[:at], new, *value[at + 1 :]])


def _of_dict(value: dict[Any, Any], pool: Pool, deep: int) -> Iterator[dict[Any, Any]]:
    items = list(value.items())
    yield from (dict(items[1:]), dict(items[:-1]), dict(items[:1]), dict(reversed(items)))
    (key, first), (_, last) = items[0], items[-1]
    if len(items) > 1:
        yield {**value, key: last}
    for key, inner in [*items[:3], *items[3:][-1:]]:
        for new in islice(_changed(inner, pool, deep + 1), 10):
            yield {**value, key: new}
    if isinstance(key, str):
        for name in (f"{key}é", f"{key}x", key.upper(), f"{key} "):
            yield {name if old == key else old: x for old, x in items}
    yield {**value, **({f"{key}2": first} if isinstance(key, str) else {})}
