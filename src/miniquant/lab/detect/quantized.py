"""Scales and integers that a quantizer stored: where wrong scales come from, and by which scale wrong integers fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..verdict import Call, Facts
from .seen import Seen

STATISTICS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("the largest absolute value", lambda x: np.abs(x).max(1)),
    ("the largest value", lambda x: x.max(1)),
    ("the absolute value of the largest value", lambda x: np.abs(x.max(1))),
    ("the absolute value of the smallest value", lambda x: np.abs(x.min(1))),
    ("the mean of the absolute values", lambda x: np.abs(x).mean(1)),
    ("the median of the absolute values", lambda x: np.median(np.abs(x), axis=1)),
    ("the sum of the absolute values", lambda x: np.abs(x).sum(1)),
    ("the smallest absolute value", lambda x: np.abs(x).min(1)),
    ("the largest less the smallest value", lambda x: np.ptp(x, axis=1)),
    ("the standard deviation", lambda x: x.std(1)),
    ("the root of the mean square", lambda x: np.sqrt((x * x).mean(1))),
    ("the largest absolute value but for the last place", lambda x: np.abs(x[:, :-1]).max(1)),
    ("the largest absolute value but for the first place", lambda x: np.abs(x[:, 1:]).max(1)),
    ("the absolute value of the first place", lambda x: np.abs(x[:, 0])),
    ("the absolute value of the last place", lambda x: np.abs(x[:, -1])),
    ("the largest absolute value of the whole matrix", lambda x: np.full(len(x), np.abs(x).max())),
)
HALF = np.float32(0.5)  # added to the float32 just below it, it gives 1
ROUNDINGS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("rounded down", np.floor),
    ("rounded up", np.ceil),
    ("cut off after the point", np.trunc),
    ("rounded with halves up", lambda x: np.floor(x + 0.5)),
    ("rounded with halves away from 0", lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5)),
    ("rounded with halves towards 0", lambda x: np.sign(x) * np.ceil(np.abs(x) - 0.5)),
    ("rounded with halves down", lambda x: np.ceil(x - 0.5)),
    ("rounded as `np.floor(x + 0.5)` does in float32", lambda x: np.floor(x.astype(np.float32) + HALF)),
    (
        "rounded as `np.sign(x) * np.floor(np.abs(x) + 0.5)` does in float32",
        lambda x: np.sign(x) * np.floor(np.abs(x.astype(np.float32)) + HALF),
    ),
)
TINY = 1e-4


@dataclass(frozen=True)
class Stored:
    """The weights, one line for each scale; the right scales and integers, and those that the student stored."""

    x: np.ndarray
    scales: np.ndarray
    mine: np.ndarray
    values: np.ndarray
    found: np.ndarray
    unit: str  # row or group

    @property
    def limit(self) -> int:
        """The largest integer that is used."""
        return int(np.abs(self.values).max())

    @property
    def top(self) -> int:
        """The largest integer that may be used: where a scale was rounded up, no weight may reach it."""
        return next((top for top in (7, 127) if top / 2 < self.limit <= top), self.limit)

    def fit(self, scales: Any, rows: Any = slice(None), rounding: Callable[[Any], Any] = np.rint) -> bool:
        """Whether the student's integers in these rows are what these scales give."""
        divisor = np.broadcast_to(np.asarray(scales, np.float32), self.scales.shape)[rows, None]
        quotient = self.x[rows] / np.where(divisor == 0, 1, divisor)
        whole = np.where(divisor == 0, 0, rounding(quotient.astype(float)).clip(-self.top, self.top))
        return bool((whole == self.found[rows]).all())


def of_quantized(facts: Facts, call: Call, expected: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[Seen]:
    """What stored scales and integers show, compared with the weights that they were made of."""
    if [*expected] != ["the scales", "the values"] or [*got] != [*expected]:
        return
    values = np.asarray(expected["the values"])
    weights = [part for part in call.case if isinstance(part, np.ndarray) and part.size == values.size]
    scales, mine = (np.asarray(side["the scales"]).reshape(-1).astype(np.float32) for side in (expected, got))
    if not weights or not scales.size or not np.isfinite(mine).all() or not values.any():
        return
    lines = (len(scales), -1)
    x = weights[0].astype(np.float32).reshape(lines)
    unit = "group" if "group" in (facts.spec.reference.__doc__ or "") else "row"
    found = np.asarray(got["the values"]).reshape(lines)
    stored = Stored(x, scales, mine, values.reshape(lines), found, unit)
    with np.errstate(all="ignore"):
        if (scales != mine).any():
            yield from _of_scales(stored)
        elif (stored.values != found).any():
            yield from _of_values(stored)


def _of_scales(stored: Stored) -> Iterator[Seen]:
    fits = stored.fit(stored.mine)
    right = bool((stored.values == stored.found).all())
    tail = "; the values are right for these scales" if fits else "; the values are right" if right else ""
    cure = "Work one scale by hand, then the values by that scale."
    for text, rank in _sources(stored):
        yield Seen("other scales", f"{text}{tail}", cure, rank)
        if tail:
            yield Seen("other scales", text, cure, rank + 0.5)
    nonzero = stored.scales > TINY
    ratio = stored.mine[nonzero] / stored.scales[nonzero]
    alike = nonzero.any() and np.allclose(stored.mine, ratio[0] * stored.scales, rtol=2e-3, atol=2e-7)
    if alike and ratio[0] > 0 and abs(ratio[0] - 1) > 3e-3:
        times, side = (ratio[0], "large") if ratio[0] > 1 else (1 / ratio[0], "small")
        yield Seen(
            f"scales too {side}", f"every scale is about {times:.4g} times too {side}{tail}", cure, 15, weak=True
        )
    if fits or right:
        yield Seen("only the scales", f"the scales are wrong{tail}", cure, 40)
    wrong = stored.mine != stored.scales
    if (stored.scales[wrong] == 0).all():
        text = f"only scales that must be 0 are wrong{tail}"
        yield Seen("scales of 0", text, "The file holds the scale 0; only the divisor may be another one.", 14)


def _sources(stored: Stored) -> Iterator[tuple[str, float]]:
    """From what the wrong scales were computed."""
    limit, x = stored.top, stored.x.astype(float)
    mine, scales = stored.mine.astype(float), stored.scales.astype(float)
    largest = np.abs(x).max(1)
    for place, (words, function) in enumerate(STATISTICS if x.shape[1] > 1 else ()):
        value = function(x)
        if words != STATISTICS[0][0] and np.allclose(value, largest):
            continue  # by chance
        for divisor in dict.fromkeys((limit, limit + 1, 2 * limit + 1, 2 * limit, 127, 128, 255, 7, 8, 15, 16, 1)):
            near = np.isclose(mine, value / divisor, rtol=1e-3, atol=3e-8).all()
            if near and not np.isclose(mine, scales, rtol=1e-3, atol=3e-8).all():
                whose = "" if "whole matrix" in words else f" of its {stored.unit}"
                if len(scales) == 1:
                    yield f"the scale is {words} of the weights, divided by {divisor}", 13 + place / 100
                    continue
                yield f"each scale is {words}{whose}, divided by {divisor}", 13 + place / 100
    exact = np.abs(x).max(1) / limit
    for text, rounded, other in _roundings(scales, exact):
        if (rounded == mine).all():
            quotient = (np.abs(stored.x).max(1).astype(np.float32) / np.float32(limit)).astype(float)
            ties = np.abs(rounded - quotient) == np.abs(scales - quotient)
            yield (other if ties[mine != scales].all() else text), 13
    upper = (exact.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if (upper == stored.mine.astype(np.float16).view(np.uint16)).all():
        yield "each scale holds the upper two bytes of a float32, and a float16 is asked for", 13
    if len(scales) > 1 and len(set(scales.tolist())) > 1:
        for words, value in _others(stored, scales):
            if (value == mine).all():
                yield f"in the place of each scale stands {words}", 14


def _roundings(scales: np.ndarray, exact: np.ndarray) -> Iterator[tuple[str, np.ndarray, str]]:
    """Other roundings to float16: what is said of each, its scales, and what is said if only ties differ."""
    up = np.nextafter(scales.astype(np.float16), np.float16(np.inf)).astype(float)
    down = np.nextafter(scales.astype(np.float16), np.float16(-np.inf)).astype(float)
    yield (
        "the scales are rounded up to float16, not to the nearest",
        np.where(scales < exact, up, scales),
        "scales halfway between two float16 are rounded up, not to the even one",
    )
    yield (
        "the scales are rounded down to float16, not to the nearest",
        np.where(scales > exact, down, scales),
        "scales halfway between two float16 are rounded down, not to the even one",
    )


def _others(stored: Stored, scales: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Other scales that may be used in place of each one, by the words for them."""
    unit, n = stored.unit, len(scales)
    yield f"the scale of the {unit} before, in the first {unit} that of the last", np.roll(scales, 1)
    yield f"the scale of the {unit} after, in the last {unit} that of the first", np.roll(scales, -1)
    yield f"the scale of the first {unit}", np.full(n, scales[0])
    yield f"the scale of the last {unit}", np.full(n, scales[-1])
    yield "the largest of all scales", np.full(n, scales.max())
    yield "the smallest of all scales", np.full(n, scales.min())
    yield "the scale of the same place from the end", scales[::-1]
    rows = stored.x.size // stored.x.shape[1]
    for groups in range(2, rows + 1) if unit == "group" else ():
        if n % groups == 0:
            table = scales.reshape(-1, groups)
            for words, part in (("first", table[:, :1]), ("last", table[:, -1:])):
                yield f"the {words} scale of the row", np.broadcast_to(part, table.shape).reshape(-1)
            yield "the largest scale of the row", np.broadcast_to(table.max(1)[:, None], table.shape).reshape(-1)


def _factors(stored: Stored) -> Iterator[tuple[str, np.ndarray]]:
    """Numbers by which weights may be multiplied where they must be divided by the scale, by the words for them."""
    top, absmax = stored.top, np.abs(stored.x).max(1)
    limit = np.float32(top)
    yield "1 / scale", np.where(stored.scales == 0, 0, np.float32(1) / stored.scales)
    yield f"{top} / absmax", np.where(absmax == 0, 0, limit / absmax)
    yield "1 / (the scale before it is rounded)", np.where(absmax == 0, 0, np.float32(1) / (absmax / limit))


def _of_values(stored: Stored) -> Iterator[Seen]:
    """The scales are right, and the values are not."""
    rows, found = (stored.values != stored.found).any(axis=1), stored.found
    limit = stored.top
    cure = "Divide each weight by its own scale, then round and clip."
    roundings = [words for words, rounding in ROUNDINGS if stored.fit(stored.scales, rounding=rounding)]
    halves = [words for words in roundings if "halves" in words]
    for words in [*map(" or ".join, combinations(halves, 2)), *halves, *roundings]:  # halves: the rest is right
        rank = 12.8 if " or " in words else 12.9 if words in halves else 13
        yield Seen(words, f"the scales are right, and the values are {words}", "Use `np.rint`.", rank)
    exact = np.abs(stored.x).max(1) / np.float32(limit)
    if stored.fit(exact):
        text = "the scales are right, and the values fit the scales before they are rounded to float16"
        yield Seen("scale rounded too late", text, "Divide by the rounded scale.", 13)
    if stored.fit(np.where(stored.scales == 0, 0, exact)):
        text = "the scales are right, and where they are not 0, the values fit them before they are rounded to float16"
        yield Seen("scale rounded too late", text, "Divide by the rounded scale.", 13.05)
    fitting = []
    for words, factor in _factors(stored):
        whole = np.where(stored.scales[:, None] == 0, 0, np.rint(stored.x * factor[:, None]).clip(-limit, limit))
        fitting += [words] * bool((whole == found).all())
    for words in [*map(" or ".join, combinations(fitting, 2)), *fitting]:  # two that the cases do not tell apart
        text = f"the scales are right, and the values are the weights times {words}, rounded"
        yield Seen("multiplied, not divided", text, cure, 13.2 + 0.1 * (" or " not in words))
    if len(rows) > 1:
        for words, value in _others(stored, stored.scales):
            if (value != stored.scales).any() and value[rows].all() and stored.fit(value, rows):
                which = f"the values of the wrong {stored.unit}s are" if not rows.all() else "the values are"
                text = f"the scales are right, and {which} what {words}{',' * (',' in words)} gives"
                yield Seen("another scale used", text, cure, 13.5)
    if (stored.scales[rows] == 0).all():
        text = f"only the values of {stored.unit}s whose scale is 0 are wrong"
        yield Seen("a scale of 0", text, "A scale of 0 gives values 0: treat it apart.", 14)
    if (stored.scales[rows] < TINY).all():
        text = f"only the values of {stored.unit}s whose scale is less than {TINY:g} are wrong"
        yield Seen("very small scales", text, "Look at what you do with a very small scale.", 16)
    differs = stored.values != stored.found
    if (np.abs(stored.values[differs]) == limit).all():
        text = f"every value that is wrong must be {-limit} or {limit}"
        yield Seen("the ends of the range", text, "Look at the largest weights, and at clipping.", 17)
    quotient = stored.x.astype(np.float32) / np.where(stored.scales == 0, 1, stored.scales).astype(np.float32)[:, None]
    if (np.abs(quotient[differs]) % 1 == 0.5).all():
        yield Seen("halves", "only values of which the quotient ends in .5 are wrong", "Round halves to even.", 15)
    if (np.abs(quotient[differs]) > limit).all():
        where = f"above {limit}" if (quotient[differs] > 0).all() else f"beyond ±{limit}"
        where = f"below -{limit}" if (quotient[differs] < 0).all() else where
        text = f"only values of which the quotient is {where} are wrong"
        yield Seen("beyond the range", text, f"Clip to -{limit}…{limit}.", 15.5)
