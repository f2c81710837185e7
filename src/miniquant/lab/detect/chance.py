"""Which of the sentences on wrong results is said: not one that fits by chance, or that other inputs do not show.

How wrong results are related to the right ones is said only if enough different wrong values show it, if more than half
of the wrong results do, and if the inputs beyond the cases do, too. The thresholds for chance are all here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.arrays import is_torch
from ..compare import numpy_of
from ..verdict import Call, Facts
from .seen import VAGUE, Seen, most_common

FORMULAS = ("something else computed", "another quotient", "another divisor", "a formula of", "digits joined")
ELSEWHERE = 12  # so many wrong results beyond the cases are looked at
FEWEST = 4  # of them, to drop a sentence by them alone
MOST, OFTEN = 0.8, 0.75  # so many wrong results of the cases must show a formula, and there such a part of that share
DIFFERENT, CALLS = 3, 5  # wrong values that differ from each other, or calls: fewer show a relation by chance
LISTED = 60  # values of one result that are compared
PLAIN = 7  # below this rank, a sentence says of what type, dtype or shape a result is: one call is enough
FACTS = re.compile(  # sentences that say where a result is wrong, or what is missing, and not how it came about
    r"all keys and values are right, in another order$|where the field [^;]* too many; "
    r"|only (the (value of|values of '|field|(first|last) (item|key|value))|item|lines?|'[^']*' is)|keys are "
    r"|exactly the keys |there (is|are) |the last |the values? (is|are) right|in line |line |the field|the first field"
    r"|the result is (empty|text|not|a |right, and then )|the right .{1,20} come |every wrong value is item|the dtype "
    r"|the answer is |in .{1,30}, the answer is |between the fields"
)
# titles of what no number shows by chance: off by 65536 and the like, exactly the nearest float16
RECOMPUTED = "multiplied, not divided"  # a whole matrix of integers, from the weights; not where a scale overflows
NO_CHANCE = re.compile(r"(.*: )?(\d{3,} too (large|small)|bytes in the other order|rounded to float16)")


def most_telling(
    facts: Facts, calls: Sequence[Call], sets: list[set[Seen]], everywhere: set[Seen], look: Callable[[Call], set[Seen]]
) -> tuple[Seen | None, list[int]]:
    """The sentence that most wrong calls show, here and on inputs beyond the cases, and the places of these calls.

    ``sets`` has what each call shows, ``everywhere`` what was found out from all calls together. A sentence that not
    all of them show says so: ``only`` is set.
    """
    others: list[set[Seen]] | None = None
    beyond = [call for call in facts.further if call.comparable and call.problem][:ELSEWHERE]
    while True:
        seen, places = most_common(sets, share=0.0, least=len(sets) // 2 + 1)
        if not seen or seen in everywhere:
            return seen, places
        if others is None:
            others = [look(call) for call in beyond]
        there = [call for call, found in zip(beyond, others) if seen in found]
        if enough(seen, [*(calls[place] for place in places), *there]) and not _by_chance(
            seen, len(places) / len(sets), len(there), len(beyond), constant_where_wrong(calls)
        ):
            if is_fact(seen):
                return seen, places
            n, of = len(there), len(beyond)
            if seen.rank >= VAGUE and (n < of or len(places) < len(sets)):
                sets = [found - {seen} for found in sets]
                continue  # it says little, and not of all
            more = f"Of {of} further wrong results, {n or 'none'} show{'s' * (n == 1)} it." if n < of else ""
            return replace(seen, after=more, only=n < of or len(places) < len(sets)), places
        sets = [found - {seen} for found in sets]


def is_fact(seen: Seen) -> bool:
    """Whether a sentence says only what is there: that is so whatever the cause."""
    return seen.plain or seen.rank < PLAIN or bool(FACTS.match(seen.text))


def enough(seen: Seen, calls: Sequence[Call]) -> bool:
    """Whether so many different wrong values show a sentence that this is no chance."""
    if is_fact(seen) or len(calls) >= CALLS or NO_CHANCE.fullmatch(seen.title):
        return True
    pairs = {pair for call in calls for pair in differing(call.expected.result, call.outcome.result)}
    return (len(calls) > 1 or seen.title == RECOMPUTED) and len(pairs) >= DIFFERENT


def _by_chance(seen: Seen, share: float, there: int, beyond: int, constant: bool) -> bool:
    """Whether a sentence that this share of the wrong calls shows may be so by chance, or is not so elsewhere."""
    formula = seen.title.startswith(FORMULAS)
    if formula and (share < MOST or constant):
        return True
    if not beyond or is_fact(seen) or seen.title == RECOMPUTED:
        return False
    if formula:
        return there < OFTEN * share * beyond
    return beyond >= FEWEST and 2 * there <= beyond


def differing(e: Any, g: Any) -> set[str]:
    """The different wrong values of a result, each with the right one in its place, as texts."""
    return {text for text, _ in zip(_differing(e, g), range(LISTED))}


def _differing(e: Any, g: Any) -> Iterator[str]:
    e, g = (numpy_of(x) if is_torch(x) else x for x in (e, g))
    if isinstance(e, np.ndarray) and isinstance(g, np.ndarray):
        if e.shape == g.shape:
            wrong = ~((e == g) | ((e != e) & (g != g)))
            pairs = zip(e[wrong].tolist(), g[wrong].tolist())
            yield from (f"{a!r} {b!r}" for a, b in pairs)
            if e.dtype != g.dtype:
                yield f"{e.dtype} {g.dtype}"
        else:
            yield from dict.fromkeys(map(repr, g.reshape(-1)[:LISTED].tolist()))
    elif isinstance(e, bytes | str) and type(e) is type(g):
        if len(e) == len(g):
            yield from (f"{a!r} {b!r}" for a, b in zip(e, g) if a != b)
        else:
            short = min(len(e), len(g))
            head = next((i for i in range(short) if e[i] != g[i]), short)
            tail = next((i for i in range(short - head) if e[-1 - i] != g[-1 - i]), short - head)
            yield f"{e!r} {g!r}"[:400]
            yield from (f"{head} {i}" for i in range(max(len(e), len(g)) - head - tail))
    elif isinstance(e, list | tuple) and isinstance(g, list | tuple):
        if len(e) == len(g):
            for a, b in zip(e, g):
                yield from _differing(a, b)
        else:
            yield from (f"item {i}" for i in range(abs(len(e) - len(g))))
            yield from (f"{i} {a!r} {b!r}"[:200] for i, (a, b) in enumerate(zip(e, g)) if repr(a) != repr(b))
    elif isinstance(e, dict) and isinstance(g, dict):
        for key in {*e} ^ {*g}:
            yield f"key {key!r}"
        for key in [key for key in e if key in g]:
            yield from _differing(e[key], g[key])
        if list(e) != list(g):
            yield from (f"{a!r} {b!r}" for a, b in zip(e, g) if a != b)
    elif repr(e) != repr(g):
        yield f"{e!r} {g!r}"[:400]


def constant_where_wrong(calls: Sequence[Call]) -> bool:
    """Whether all wrong results are one and the same number."""
    results = [call.outcome.result for call in calls]
    numbers = all(isinstance(x, int | float | np.number) and not isinstance(x, bool) for x in results)
    return numbers and len(results) > 1 and all(x == results[0] for x in results)
