"""Wrong numbers that are off in proportion to an argument, or to a product or a quotient of two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from ..verdict import Call, Facts
from .formulas import numbers_of, scalar
from .seen import Seen, bracketed, number

FEWEST, CALLS = 3, 5  # differences that are not the same, and wrong numbers: fewer may be in proportion by chance
CLOSE = 1e-9
BEYOND = 40  # wrong numbers beyond these must be off by the same
TITLE = 20  # characters of a term in a title


def of_differences(facts: Facts, calls: Sequence[Call]) -> Iterator[Seen]:
    """What every wrong number is off by, in proportion to the same thing in all of them."""
    pairs = [(scalar(call.expected.result), scalar(call.outcome.result)) for call in calls]
    if any(e is None or g is None for e, g in pairs) or len(pairs) < CALLS:
        return
    e, g = (np.array([pair[side] for pair in pairs], float) for side in (0, 1))
    off = g - e
    if (np.abs(off) < 1e-7 * np.abs(e)).any() or len({*off.tolist()}) < FEWEST:
        return
    tables = [numbers_of(facts, call) for call in calls]
    names = [name for name in tables[0] if all(table.get(name) for table in tables)]  # known in all, and not 0
    values = {name: np.array([table[name] for table in tables]) for name in names}
    others = [call for call in (*facts.fresh, *facts.changed) if call.comparable and call.problem][:BEYOND]
    for rank, (words, term) in enumerate(_terms(values)):
        factor = off / term
        if np.allclose(factor, factor[0], rtol=CLOSE, atol=0):
            if not all(_is_off(facts, call, words, factor[0]) for call in others):
                continue
            by = _times(abs(factor[0]), words)
            if not (term > 0).all():  # too large by a negative number is too small
                text = f"every number is the right one {'plus' if factor[0] > 0 else 'minus'} {by}"
                yield Seen("off in proportion", text, "", 21 + rank / 99)
                return
            way = "too large" if factor[0] > 0 else "too small"
            title = f"{way} by {by}" if by == words and len(by) <= TITLE else "off in proportion"
            yield Seen(title, f"every number is {way} by {by}", "", 21 + rank / 99)
            return


def _terms(values: dict[str, np.ndarray]) -> list[tuple[str, np.ndarray]]:
    """What a difference may be in proportion to, by the words for it."""
    terms = list(values.items())
    for a, b in permutations(values, 2):
        terms += [(f"{bracketed(a)} × {bracketed(b)}", values[a] * values[b])] if a <= b else []
    for a, b in permutations(values, 2):
        terms += [(f"{bracketed(a)} / {bracketed(b)}", values[a] / values[b])]
    return terms


def _is_off(facts: Facts, call: Call, words: str, factor: float) -> bool:
    """Whether the wrong number of a call is off by so many times a term, too, as far as that is known there."""
    e, g = scalar(call.expected.result), scalar(call.outcome.result)
    known = {name: np.array([value]) for name, value in numbers_of(facts, call).items() if value}
    term = dict(_terms(known)).get(words)
    if e is None or g is None or term is None:
        return True
    return bool(abs(g - e - factor * term[0]) <= 1e-6 * abs(g - e) + 1e-12 * abs(e))


def _times(factor: float, words: str) -> str:
    if np.isclose(factor, 1, rtol=CLOSE, atol=0):
        return words
    inverse = 1 / factor
    if np.isclose(inverse, round(inverse), rtol=CLOSE, atol=0):
        return f"{bracketed(words)} / {round(inverse)}"
    return f"{number(factor)} times {bracketed(words)}"
