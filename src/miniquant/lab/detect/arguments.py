"""Whether a wrong number or array is something simple computed from the arguments: a mean, a sum, a product."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.arrays import is_torch
from ..compare import equal
from .numbers import array_of
from .orders import near
from .seen import Seen, all_in_common

STATISTICS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("the maximum of {}", np.max),
    ("the minimum of {}", np.min),
    ("the mean of {}", np.mean),
    ("the sum of {}", np.sum),
    ("the largest absolute value of {}", lambda x: np.max(np.abs(x))),
    ("the absolute value of the maximum of {}", lambda x: np.abs(np.max(x))),
    ("the mean absolute value of {}", lambda x: np.mean(np.abs(x))),
    ("the sum of the absolute values of {}", lambda x: np.sum(np.abs(x))),
    ("the absolute value of the mean of {}", lambda x: np.abs(np.mean(x))),
    ("the absolute value of the sum of {}", lambda x: np.abs(np.sum(x))),
    ("the mean of the squares of {}", lambda x: np.mean(x * x)),
    ("the sum of the squares of {}", lambda x: np.sum(x * x)),
    ("the largest square of {}", lambda x: np.max(x * x)),
    ("the root of the mean of the squares of {}", lambda x: np.sqrt(np.mean(x * x))),
    ("the root of the sum of the squares of {}", lambda x: np.sqrt(np.sum(x * x))),
    ("the standard deviation of {}", np.std),
    ("the median of {}", np.median),
    ("the median absolute value of {}", lambda x: np.median(np.abs(x))),
    ("the smallest absolute value of {}", lambda x: np.min(np.abs(x))),
    ("the largest less the smallest of {}", np.ptp),
    ("the first value of {}", lambda x: x.flat[0]),
    ("the last value of {}", lambda x: x.flat[-1]),
    ("the absolute value of the first of {}", lambda x: np.abs(x.flat[0])),
    ("the absolute value of the last of {}", lambda x: np.abs(x.flat[-1])),
    ("the largest of {}, NaN left out", np.nanmax),
    ("the largest absolute value of {}, NaN left out", lambda x: np.nanmax(np.abs(x))),
    ("the place of the largest absolute value of {}", lambda x: np.abs(x).argmax()),
    ("the place of the largest of {}", np.argmax),
    ("the number of values in {}", np.size),
    ("the number of values of {} that are not 0", np.count_nonzero),
)
OF_PARTS = 12  # statistics that are tried on parts of an array
LARGEST = 20_000  # values; a larger argument is left alone


def of_arguments(names: dict[str, Any], expected: Any, got: Any) -> Iterator[Seen]:
    """What simple function of the arguments a wrong result is. It needs two pairs: one may be so by chance."""
    if isinstance(got, dict):
        yield from _of_dicts(names, expected, got)
        return
    g, e = array_of(got), array_of(expected)
    if g is None or e is None or isinstance(got, list | tuple) or g.size > LARGEST or not np.isfinite(_float(g)).all():
        return
    arrays = {name: array for name, value in names.items() if (array := _numbers(value)) is not None}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of values that are all NaN
        if g.ndim:
            yield from _elementwise(arrays, _float(g), _float(e))
        elif g.any() or not e.ndim:  # where a 0 stands in place of an array, many a statistic is 0 by chance
            yield from _statistics(arrays, _float(g), _float(e))


def _of_dicts(names: dict[str, Any], expected: Any, got: dict[Any, Any]) -> Iterator[Seen]:
    """For each key the same function of what the arguments have at that key."""
    if not isinstance(expected, dict) or expected.keys() != got.keys():
        return
    wrong = [key for key in expected if not equal(expected[key], got[key])]
    tables = {name: value for name, value in names.items() if isinstance(value, dict)}
    sets = []
    for key in wrong:
        inner = {f"{name} at its key": value[key] for name, value in tables.items() if key in value}
        sets.append(set(of_arguments(inner, expected[key], got[key])) if inner else set())
    for common in all_in_common(sets):
        text = common.text.replace(" at its key", "")
        yield replace(common, text=f"at every key that is wrong, {text} there", weak=len(wrong) < 2)


def _numbers(value: Any) -> np.ndarray | None:
    """Numbers that can be computed with, as float64."""
    if is_torch(value):
        value = value.detach().numpy()
    if not isinstance(value, np.ndarray | int | float) or isinstance(value, bool):
        return None
    array = np.asarray(value)
    return _float(array) if 0 < array.size <= LARGEST and array.dtype.kind in "iuf" else None


def _float(value: Any) -> np.ndarray:
    return np.asarray(value).astype(float)


def _statistics(arrays: dict[str, np.ndarray], g: np.ndarray, e: np.ndarray) -> Iterator[Seen]:
    arrays = {name: value for name, value in arrays.items() if value.ndim or len(arrays) == 2}  # formulas has numbers
    inputs = {name: value for name, value in arrays.items() if value.ndim}
    parts: dict[str, np.ndarray] = {}
    pairs = list(arrays.items())
    for one, a in pairs:
        for two, b in pairs:
            if one < two and a.shape == b.shape:
                inputs |= dict(_of_two(one, a, two, b))
                parts |= dict(_parts_of(f"{one} - {two}", a - b))
    for name, value in inputs.items():
        yield from _fitting(name, value, STATISTICS, g, e, 27)
    for one, a in pairs:
        for two, b in pairs:
            if one < two and a.shape == b.shape:
                yield from _of_statistics(one, a, two, b, g, e)
    for name, value in parts.items():
        yield from _fitting(name, value, STATISTICS[:OF_PARTS], g, e, 28 + 0.4 * ("all parts but" in name))


def _fitting(name: str, value: np.ndarray, table: Any, g: np.ndarray, e: np.ndarray, rank: float) -> Iterator[Seen]:
    for place, (words, function) in enumerate(table):
        found = function(value)
        if _close(found, g) and not _close(found, e):
            text = f"the result is {words.format(name)}"
            cure = "Compare it with what the docstring asks for."
            yield Seen("something else computed", text, cure, rank + place / 100, weak=True)


def _of_statistics(one: str, a: np.ndarray, two: str, b: np.ndarray, g: np.ndarray, e: np.ndarray) -> Iterator[Seen]:
    """The difference of one statistic of each argument, and the right result relative to one of them."""
    cure = "Compare it with what the docstring asks for."
    for place, (words, function) in enumerate(STATISTICS[:OF_PARTS]):
        left, right = function(a), function(b)
        text = f"the result is the difference of two numbers: {words.format(one)}, and the same of {two}"
        if (_close(left - right, g) or _close(right - left, g)) and not _close(g, e):
            yield Seen("something else computed", text, cure, 28.5 + place / 100, weak=True)
        for name, value in ((one, left), (two, right)):
            if np.shape(e) == () and _close(e / value, g) and not _close(g, e) and value != 1:
                text = f"the result is the right one divided by {words.format(name)}"
                yield Seen("something else computed", text, cure, 28.7 + place / 100, weak=True)


def _of_two(one: str, a: np.ndarray, two: str, b: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    yield f"{one} - {two}", a - b
    yield f"{one} + {two}", a + b
    yield f"the difference of the absolute values of {one} and {two}", np.abs(a) - np.abs(b)
    yield f"({one} - {two}) / {one}", (a - b) / a
    yield f"({one} - {two}) / {two}", (a - b) / b
    if a.ndim == 1:
        yield f"{one} - {two}, both sorted", np.sort(a) - np.sort(b)


def _parts_of(name: str, value: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The first and the last part along each axis, and all but these."""
    for axis, length in enumerate(value.shape):
        if length > 1:
            along = f" along axis {axis}" if value.ndim > 1 else ""
            yield f"the first part of {name}{along}", value.take([0], axis)
            yield f"the last part of {name}{along}", value.take([-1], axis)
            yield f"all parts but the first of {name}{along}", np.delete(value, 0, axis)
            yield f"all parts but the last of {name}{along}", np.delete(value, -1, axis)


def _elementwise(arrays: dict[str, np.ndarray], g: np.ndarray, e: np.ndarray) -> Iterator[Seen]:
    for one, a in arrays.items():
        for two, b in arrays.items():
            if one == two:
                continue
            spread = [("", b), ("[:, None]", b[:, None])] if b.ndim == 1 else [("", b)]
            for suffix, other in spread:
                shown = f"{two}{suffix}" if not suffix else f"{two[:-1]}{suffix}`"
                for sign, function in (("*", np.multiply), ("/", np.divide), ("-", np.subtract), ("+", np.add)):
                    try:
                        value = function(a, other)
                    except ValueError:
                        continue
                    if value.shape == g.shape and _close(value, g) and not _close(value, e):
                        text = f"the result is {one} {sign} {shown}".replace("` * `", " * ").replace("` / `", " / ")
                        text = text.replace("` - `", " - ").replace("` + `", " + ")
                        yield Seen(
                            "something else computed",
                            text,
                            "Compare it with what the docstring asks for.",
                            27,
                            weak=True,
                        )


def _close(a: Any, b: np.ndarray) -> bool:
    if b.ndim == 0:
        return np.shape(a) == () and abs(float(a) - float(b)) <= 1e-6 * abs(float(b))
    return np.shape(a) == b.shape and near(a, b, 1e-6)
