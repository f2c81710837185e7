"""Whether a wrong number is a simple formula: of the right one, of the arguments, of quantities that a lesson names."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from itertools import combinations, permutations
from typing import Any

import numpy as np

from ...core.arrays import is_torch
from ..spec import Case, Exercise, Same
from ..verdict import Call, Facts
from .orders import passes
from .seen import Seen, bracketed, number

EXACT = 2**53  # below it, a float holds every whole number
MULTIPLES = (1, 2, 3, 4, 8, 16, 32, 100, 0.5, 0.25, 0.125)
OFFSETS = (*range(1, 17), 24, 28, 32, 48, 64, 0.5, 0.25, 0.125, 1.5, 2.5, 3.5)
TERMS = (1, 2, 3, 4, 6, 8, 12, 16, 0.5, -1, -2, -3, -4, -6, -8, -12, -16, -0.5)
EACH = np.array(TERMS, float)
PADDED = (2, 4, 8, 16, 32, 64, 128, 256)
MOST = 20  # quantities; more of them would fit by chance


def quantities_of(spec: Exercise, case: Case) -> dict[str, Any]:
    """What the lesson names for a case, by the words for it; nothing where it cannot be computed."""
    return _quantities_of(spec, Same(case)) if spec.quantities else {}


@functools.lru_cache(maxsize=4096)
def _quantities_of(spec: Exercise, same: Same) -> dict[str, Any]:
    """The same, computed once for a case: many detectors ask."""
    assert spec.quantities
    try:
        return spec.quantities(*same.value)
    except Exception:
        return {}


def numbers_of(facts: Facts, call: Call, key: Any = None) -> dict[str, float]:
    """Numbers that a result may be made of: those of the lesson, or their values at a key, and the arguments'."""
    found: dict[str, float] = {}
    for words, value in quantities_of(facts.spec, call.case).items():
        value = value.get(key) if isinstance(value, dict) else value
        if isinstance(value, int | float) and not isinstance(value, bool) and float(value) == value:
            found[words] = float(value)
    for name, value in zip(facts.names, call.case):
        if isinstance(value, int | float | np.number) and not isinstance(value, bool):
            if float(value) != value:
                continue  # a whole number that a float rounds: a formula of it may seem to differ from the right one
            found.setdefault(f"`{name}`", float(value))
        elif isinstance(value, dict | list) and not facts.spec.quantities:
            found[f"`len({name})`"] = float(len(value))
            numbers = [x for x in (value.values() if isinstance(value, dict) else value)]
            if numbers and all(type(x) in (int, float) for x in numbers):
                found |= {f"the sum of `{name}`": float(sum(numbers)), f"the largest of `{name}`": float(max(numbers))}
    return {words: value for words, value in list(found.items())[:MOST] if math.isfinite(value)}


def of_formulas(expected: Any, got: Any, quantities: dict[str, float]) -> Iterator[Seen]:
    """Every formula of few terms that gives the wrong number and not the right one."""
    e, g = scalar(expected), scalar(got)
    whole = type(expected) is int and isinstance(got, int | np.integer)
    if e is None or g is None or (_close(e, g) and not whole):
        return
    off = float(int(got) - expected) if whole else g - e  # large offsets are compared exactly
    yield from _of_the_right(e, g)
    if e == int(e) and g == int(g):
        yield from _of_multiples(*((expected, int(got)) if whole else (int(e), int(g))))
    known = {words: value for words, value in quantities.items() if value}
    for words, q in known.items():
        yield from _off(off, words, q)
    if not _close(e, g):  # of two large whole numbers that a float cannot tell apart, no formula gives only one
        yield from _of_values(e, g, known)
    for (one, p), (two, q) in permutations(quantities.items(), 2):
        if q and p != 1 and _close(off, (p - 1) * q):
            text = f"the result is the right one and {bracketed(two)} times ({one} less 1)"
            label = "another factor" if "/" in one else "added too often"  # a quotient may be less than 1
            yield Seen(label, text, "Look at what is added, and how often.", 28, needs=3, whole=True)
    yield from _off_by_two(off, quantities)


def _of_values(e: float, g: float, known: dict[str, float]) -> Iterator[Seen]:
    """The formulas that give the wrong number itself; ``e`` and ``g`` are apart by more than rounding."""
    cure = "Compare it with what the docstring asks for."
    for words, q in known.items():
        for c in MULTIPLES:
            if _close(g, c * q):
                weak = c != 1 or g != q or float(f"{g:.3g}") == g  # a number of many digits is no chance
                yield Seen("another quantity", f"the result is {_times(c, words)}", cure, 25, weak=weak, whole=True)
        if e * g > 0 and q != 1 and (_close(g / q, e) or _close(g * q, e)):
            side = "large" if g > e else "small"
            text = f"the result is too {side} by a factor that is {words}"
            yield Seen("a factor", text, "Look for a factor that is missing or used twice.", 20, weak=True, whole=True)
    for (one, p), (two, q) in permutations(known.items(), 2):
        for c in MULTIPLES:
            if _close(g, c * p / q):
                text = f"the result is {_times(c, one)}, divided by {bracketed(two)}"
                yield Seen("another quotient", text, cure, 27, needs=3, whole=True)
        if e and _close(g * q, e * p):
            text = f"the result is the right one times {bracketed(one)}, divided by {bracketed(two)}"
            yield Seen("another quotient", text, cure, 28, needs=3, whole=True)
        if _close(g, p - q):
            text = f"the result is {bracketed(one)} less {bracketed(two)}"
            yield Seen("another difference", text, cure, 27, needs=3, whole=True)
    for (one, p), (two, q) in combinations(known.items(), 2):
        if _close(g, p + q):
            text = f"the result is the sum of {bracketed(one)} and {bracketed(two)}"
            yield Seen("another sum", text, cure, 27, needs=3, whole=True)
        if _close(g, p * q):
            text = f"the result is the product of {bracketed(one)} and {bracketed(two)}"
            yield Seen("another product", text, cure, 27, needs=3, whole=True)


def of_words(quantities: dict[str, Any], key: Any, expected: Any, got: Any) -> Iterator[Seen]:
    """A text that differs from the right one, which the lesson names."""
    if isinstance(got, str) and isinstance(expected, str):
        for place, (words, value) in enumerate(quantities.items()):
            value = value.get(key) if isinstance(value, dict) else value
            if isinstance(value, str) and value == got != expected:
                text = f"the result is {words}"
                yield Seen("another one", text, "", 20 + place / 100, weak=True, whole=True)


def scalar(value: Any) -> float | None:
    """A number that is finite, as a float."""
    if is_torch(value) and value.numel() == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer of hundreds of digits
        return None
    return number if math.isfinite(number) else None


def _of_the_right(e: float, g: float) -> Iterator[Seen]:
    """Formulas of the right number alone."""
    large = max(abs(e), abs(g)) >= EXACT  # 1 more or less is the same float
    formulas = (
        []
        if large
        else [("1 less the right one", 1 - e), ("100 less the right one", 100 - e), ("the right one less 1", e - 1)]
    )
    if e:
        formulas += [
            ("100 divided by the right one", 100 / e),
            ("1 less 1 divided by the right one", 1 - 1 / e),
            ("100 less 100 divided by the right one", 100 - 100 / e),
        ]
    if e > 0 and e != 1:
        formulas += [("the logarithm to base 2 of the right one", math.log2(e))]
    for words, value in formulas:
        if _close(g, value):
            yield Seen("a formula of the right one", f"the result is {words}", "", 19, weak=True, whole=True)


def _of_multiples(e: int, g: int) -> Iterator[Seen]:
    """The right number, rounded to a multiple."""
    for m in PADDED:
        if g and g in (-(-e // m) * m, e // m * m):  # 0 is a multiple of everything
            text = f"the result is the right one, rounded up or down to a multiple of {m}"
            yield Seen("rounded to a multiple", text, "Nothing is padded here.", 19.5, weak=True, whole=True)


def _off(off: float, words: str, q: float) -> Iterator[Seen]:
    side = "large" if off > 0 else "small"
    for c in OFFSETS:
        if _close(abs(off), c * q):
            text = f"the result is too {side} by {_times(c, words)}"
            yield Seen(f"too {side}", text, "Look for what is counted twice or left out.", 21, weak=True, whole=True)


def _off_by_two(off: float, quantities: dict[str, float]) -> Iterator[Seen]:
    """Too much of one quantity and too much, or too little, of another."""
    for (one, p), (two, q) in combinations(quantities.items(), 2):
        if p < 0 or q < 0:
            continue  # too large by a negative number
        sums = np.add.outer(EACH * p, EACH * q)
        near = np.abs(sums - off) <= 2e-6 * np.maximum(np.abs(sums), abs(off))
        for c, d in ((TERMS[first], TERMS[second]) for first, second in np.argwhere(near)):
            if (p or q) and _close(off, c * p + d * q):
                if c > 0 and d > 0:
                    text = f"too large by {_times(c, one)} and {_times(d, two)}"
                elif c < 0 and d < 0:
                    text = f"too small by {_times(-c, one)} and {_times(-d, two)}"
                else:
                    more, less = ((c, one), (-d, two)) if c > 0 else ((d, two), (-c, one))
                    text = f"too large by {_times(*more)}, and too small by {_times(*less)}"
                rank = 29 + (abs(c) + abs(d)) / 100
                yield Seen("two terms", f"the result is {text}", "", rank, needs=4, whole=True)


def _times(c: float, words: str) -> str:
    half = {0.5: "half of ", 0.25: "a quarter of ", 0.125: "an eighth of ", 1: "", 2: "twice "}
    words = words if c == 1 else bracketed(words)
    return f"{half[c]}{words}" if c in half else f"{number(c)} times {words}"


def _close(a: float, b: float) -> bool:
    """Whether two numbers are equal but for their last digits; whole numbers that a float holds must be equal."""
    if not math.isclose(a, b, rel_tol=1e-6):
        return False
    if float(a).is_integer() and float(b).is_integer():
        return a == b or (max(abs(a), abs(b)) >= EXACT and math.isclose(a, b, rel_tol=1e-15))
    return passes(a, b)
