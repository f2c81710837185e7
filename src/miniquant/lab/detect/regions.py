"""Whether a wrong number comes from another statistic, another part of an argument, or another divisor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .numbers import array_of
from .orders import near
from .seen import Seen, number

Statistic = Callable[[Any], Any]
CLOSE = 6e-4  # relative: a scale may have been rounded to float16
TINY = 2.0**-25  # absolute: half of float16's smallest step
LARGEST = 20_000  # values; a larger argument is left alone
SPREAD = 2e-3  # relative: quotients that differ by more are not one number, whatever its last digits

STATISTICS: tuple[tuple[str, Statistic], ...] = (
    ("the largest absolute value", lambda x: np.abs(x).max(-1)),
    ("the mean", lambda x: x.mean(-1)),
    ("the sum", lambda x: x.sum(-1)),
    ("the maximum", lambda x: x.max(-1)),
    ("the minimum", lambda x: x.min(-1)),
    ("the largest less the smallest value", lambda x: np.ptp(x, -1)),
    ("half of the largest less the smallest value", lambda x: np.ptp(x, -1) / 2),
    ("the mean of the absolute values", lambda x: np.abs(x).mean(-1)),
    ("the root of the mean of the squares", lambda x: np.sqrt((x * x).mean(-1))),
    ("the standard deviation", lambda x: x.std(-1)),
    ("the median of the absolute values", lambda x: np.median(np.abs(x), -1)),
    ("the sum of the absolute values", lambda x: np.abs(x).sum(-1)),
    ("the root of the sum of the squares", lambda x: np.sqrt((x * x).sum(-1))),
    ("the absolute value of the mean", lambda x: np.abs(x.mean(-1))),
    ("the smallest absolute value", lambda x: np.abs(x).min(-1)),
    ("the absolute value of the maximum", lambda x: np.abs(x.max(-1))),
    ("the absolute value of the minimum", lambda x: np.abs(x.min(-1))),
    ("the minimum with the other sign", lambda x: -x.min(-1)),
    ("the smaller distance of both ends from 0", lambda x: np.minimum(np.abs(x.max(-1)), np.abs(x.min(-1)))),
    ("the sum of the distances of both ends from 0", lambda x: np.abs(x.max(-1)) + np.abs(x.min(-1))),
    ("the maximum, or 0 if that is negative,", lambda x: np.maximum(x.max(-1), 0)),
    ("the median", lambda x: np.median(x, -1)),
    ("the first value", lambda x: x[..., 0]),
    ("the absolute value of the first value", lambda x: np.abs(x[..., 0])),
    ("the last value", lambda x: x[..., -1]),
    ("the absolute value of the last value", lambda x: np.abs(x[..., -1])),
    ("the mean of the largest and the smallest value", lambda x: (x.max(-1) + x.min(-1)) / 2),
)
WHOLE = {n + k for n in (1, 8, 16, 128, 256) for k in (-2, -1, 0)} - {-1, 0}
PLAIN = WHOLE | {0.5, 2, 3, 4, 32, 64}  # divisors that a single right value shows beyond chance
BASES = 6  # the first so many may be what is right


def of_regions(names: tuple[str, ...], case: tuple[Any, ...], expected: Any, got: Any) -> Iterator[Seen]:
    """What a wrong result is if the right one is a statistic of an argument, perhaps divided by a number."""
    e, g = array_of(expected), array_of(got)
    if e is None or g is None or e.shape != g.shape or e.ndim > 2 or isinstance(got, list | tuple | dict | bytes):
        return
    if e.dtype.kind == "O" or g.dtype.kind == "O" or not (np.isfinite(e).all() and np.isfinite(g).all()):
        return
    e, g = e.astype(float), g.astype(float)
    with np.errstate(all="ignore"):
        for name, value in zip(names, case):
            if isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and 1 < value.size <= LARGEST:
                yield from _of_argument(f"`{name}`", value.astype(float), e, g)


def _of_argument(name: str, value: np.ndarray, e: np.ndarray, g: np.ndarray) -> Iterator[Seen]:
    regions = dict(_regions(name, value, e.shape))
    if not regions or not np.isfinite(value).all():
        return
    (right_place, right), *_ = regions.items()
    found = next((base for base in _bases(right, e)), None)
    if found is None:
        return
    wanted, divisor = found
    divided = f" divided by {number(divisor)}" if divisor != 1 else ""
    for order, (words, statistic) in enumerate(STATISTICS):
        for far, (place, part) in enumerate(regions.items()):
            if words != wanted and far:
                continue  # another statistic of another part: so much may be so by chance
            v = statistic(part)
            if _close(v / divisor, g) and not _close(v / divisor, e):
                text = f"{_subject(e)} is {words} of {place}{divided}; the right one takes {wanted} of {right_place}"
                plain = (part >= 0).all() and ("absolute" in words or "distance" in words)
                rank = 17.5 + (order + far) / 100 + 0.3 * plain
                yield Seen("something else computed", text, "Compare it with the docstring.", rank, weak=True)
        for said, size in _sizes(name, value) if words == wanted else ():
            if size != divisor and _close(statistic(right) / size, g) and not _close(statistic(right) / size, e):
                text = f"{_subject(e)} is {words} of {right_place} divided by {said}, where {number(divisor)} is right"
                yield Seen("another divisor", text, "Look at the number that you divide by.", 17.8, weak=True)
        other = _divisor(statistic(right), g)
        if other and (words == wanted or other in WHOLE) and not _close(statistic(right) / other, e):
            text = f"{_subject(e)} is {words} of {right_place} divided by {number(other)}"
            text += f", where {number(divisor)} is right" if words == wanted else f"; the right one takes {wanted}"
            yield Seen("another divisor", text, "Look at the number that you divide by.", 18.5 + order / 100, weak=True)


def _sizes(name: str, value: np.ndarray) -> Iterator[tuple[str, int]]:
    """Lengths that a sum may have been divided by, by the words for them."""
    yield f"the number of values in {name}", value.size
    for axis, n in enumerate(value.shape if value.ndim > 1 else ()):
        yield f"`{name.strip('`')}.shape[{axis}]`", n


def _subject(e: np.ndarray) -> str:
    return "each value" if e.ndim else "the value"


def _bases(right: np.ndarray, e: np.ndarray) -> Iterator[tuple[str, float]]:
    """Statistics whose quotient by one number is the right result: (words, the number)."""
    for words, statistic in STATISTICS[:BASES]:
        divisor = _divisor(statistic(right), e)
        if divisor and divisor == round(divisor, 3) and (e.size > 1 or divisor in PLAIN):
            yield words, divisor


def _divisor(v: np.ndarray, e: np.ndarray) -> float:
    """The one number by which ``v`` is divided in ``e``, if there is one: a half, or three digits; else 0."""
    large = np.abs(e) > 1e-4
    if v.shape != e.shape or not large.any():
        return 0.0
    quotients = v[large] / e[large]
    least, most = float(quotients.min()), float(quotients.max())
    if not most - least <= SPREAD * abs(most):  # no median is needed then
        return 0.0
    divisor = float(np.median(quotients))
    if not np.isfinite(divisor) or divisor <= 0:
        return 0.0
    half = round(2 * divisor) / 2
    divisor = half if half and abs(half / divisor - 1) < CLOSE else float(f"{divisor:.3g}")
    return divisor if _close(v / divisor, e) else 0.0


def _close(v: np.ndarray, g: np.ndarray) -> bool:
    return v.shape == g.shape and near(v, g, CLOSE, TINY)


def _regions(name: str, value: np.ndarray, shape: tuple[int, ...]) -> Iterator[tuple[str, np.ndarray]]:
    """Parts of an argument, one for each value of a result of this shape; the right ones first."""
    if not shape:
        yield name, value.reshape(-1)
        if value.ndim > 1:
            yield f"the first row of {name}", value[0].reshape(-1)
            yield f"the last row of {name}", value[-1].reshape(-1)
            yield f"the first column of {name}", value[..., 0].reshape(-1)
            yield f"the last column of {name}", value[..., -1].reshape(-1)
        yield f"{name} without its last value", value.reshape(-1)[:-1]
        yield f"{name} without its first value", value.reshape(-1)[1:]
        return
    if value.ndim != 2 or value.shape[0] != shape[0] or not value.shape[1]:
        return
    if len(shape) == 1:
        yield "its row", value
        if value.shape[0] == value.shape[1]:
            yield "its column", value.T
    elif not shape[1] or value.shape[1] % shape[1] or value.shape[1] == shape[1]:
        return
    else:
        groups = value.reshape(*shape, -1)
        yield "its group", groups
        turns = value.reshape(shape[0], -1, shape[1]).transpose(0, 2, 1)
        yield "every n-th value of its row", turns
        yield "its row", np.broadcast_to(value[:, None, :], (*shape, value.shape[1]))
        yield "the group before", np.roll(groups, 1, 1)
        yield "the group after", np.roll(groups, -1, 1)
        if groups.shape[2] > 1:
            yield "its group without the last value", groups[..., :-1]
            yield "its group without the first value", groups[..., 1:]
        return
    yield "the row before", np.roll(value, 1, 0)
    yield "the row after", np.roll(value, -1, 0)
    yield f"all of {name}", np.broadcast_to(value.reshape(-1), (*shape, value.size))
    if value.shape[1] > 1:
        yield "its row without the last value", value[:, :-1]
        yield "its row without the first value", value[:, 1:]
        yield "every second value of its row", value[:, ::2]
