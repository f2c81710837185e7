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
OF_NUMBERS = (*FORMULAS, "rounded", "another quantity")  # one number alone may be all of this by chance
OF_ITEM = re.compile(r"item (\d+): ")
ELSEWHERE = 12  # so many wrong results beyond the cases are looked at
FEWEST = 4  # of them, to drop a sentence by them alone
MOST = OFTEN = 0.8  # such a share of the wrong results must show a formula, of the cases and beyond them
ALMOST = 0.8  # and any other relation, unless it is shown by so many
SHOWN = 8  # so many wrong results, or so many different values, must show what not all of them show
CONFIRMED = 3  # wrong results, here and beyond the cases, must show a weak fact
MANY = 12  # wrong values that differ from each other: then half of the wrong results are enough
DIFFERENT, CALLS = 3, 5  # wrong values that differ from each other, or calls: fewer show a relation by chance
LISTED = 60  # values of one result that are compared
PLAIN = 7  # below this rank, a sentence says of what type, dtype or shape a result is: one call is enough
FACTS = re.compile(  # sentences that say where a result is wrong, or what is missing, and not how it came about
    r"all keys and values are right, in another order$|where the field [^;]* too many; "
    r"|only (the (value of|values of '|field|(first|last) (item|key|value))|item|lines?|'[^']*' is)|keys are "
    r"|exactly the keys |there (is|are) |the last |the values? (is|are) right|in line |line |the first field"
    r"|the fields? (?!that differ)|only the .* of (block|part)"
    r"|the result is (empty|text|not|a |right, and then )|the right .{1,20} come |every wrong value is item|the dtype "
    r"|the answer is |in .{1,30}, the answer is |between the fields"
)
ENDS = re.compile(
    r"(in [^,]*, )?(only (the )?(first|last) (value|key|row|column)"
    r"|only the value of the last key|the (first|last) (value|row|column|part|item) is wrong)"
)
BESIDE = re.compile(r"the (result is right, and then|right .{1,20} comes? after) ")  # of few, at the end by chance
SIDES = re.compile(r"\b(is too (large|small|far from 0|close to 0)|in reversed order)$")  # of a part: often chance
WEAK = re.compile(  # facts on a place, or on how much is off: of few results, these are so by chance
    r"(in [^,]*, )?(where the field|only the (first|last)|every wrong value is"
    r"|the (first|last) (value|row|column|part|item|byte|character|key))"
    r"|.*\b(block|row|group|part|record|column) \d|.*\b(too (large|small) by|stands in place of|off by) "
    r"|.*\b(first|last|half) [^;]*(is|are) wrong"
)
EXACT = ("off by one",)  # one result that does not show it proves another cause
WHOLE = re.compile(r"only |every wrong value is [^:]*$")  # facts that say little of a part of the wrong results
# titles of what no number shows by chance: off by 65536 and the like, exactly the nearest float16
RECOMPUTED = "multiplied, not divided"  # a whole matrix of integers, from the weights; not where a scale overflows
NO_CHANCE = re.compile(
    r"(.*: )?(\d{3,} too (large|small)|bytes in the other order|rounded to float16|nearly right|the last digits lost)"
)


def most_telling(
    facts: Facts, calls: Sequence[Call], sets: list[set[Seen]], everywhere: set[Seen], look: Callable[[Call], set[Seen]]
) -> tuple[Seen | None, list[int]]:
    """The sentence that most wrong calls show, here and on inputs beyond the cases, and the places of these calls.

    ``sets`` has what each call shows, ``everywhere`` what was found out from all calls together. A sentence that not
    all of them show says so: ``only`` is set.
    """
    others: list[set[Seen]] | None = None
    beyond = None
    while True:
        seen, places = most_common(sets, share=0.0, least=len(sets) // 2 + 1)
        if not seen or seen in everywhere:
            return seen, places
        fact = is_fact(seen) and (len(places) >= ALMOST * len(sets) or not WHOLE.match(seen.text))
        if fact and not is_weak(seen) and not (BESIDE.match(seen.text) and len(places) < CALLS):
            return seen, places
        if others is None or beyond is None:
            beyond = wrong_beyond(facts)
            others = [look(call) for call in beyond]
        there = [call for call, found in zip(beyond, others) if seen in found]
        if fact and len(there) == len(beyond) and len(places) + len(there) >= CONFIRMED:
            return seen, places
        showing = [*(calls[place] for place in places), *(call for call in there if call in facts.further)]
        most = (len(places) / len(sets), len(there), len(beyond))
        if (
            not fact
            and enough(seen, showing)
            and not _by_chance(seen, *most, constant=constant_where_wrong(calls, seen), many=_are_many(showing))
        ):
            n, of = len(there), len(beyond)
            share = (len(places) + n) / (len(sets) + of)
            vague = seen.rank >= VAGUE or SIDES.search(seen.text) or seen.title.endswith(EXACT) or is_weak(seen)
            vague = vague or not (_are_many(showing) or (share >= ALMOST and len(showing) >= SHOWN))
            if vague and (n < of or len(places) < len(sets)):
                sets = [found - {seen} for found in sets]
                continue  # it says little, and not of all
            return replace(seen, only=n < of or len(places) < len(sets)), places
        sets = [found - {seen} for found in sets]


def wrong_beyond(facts: Facts) -> list[Call]:
    """Wrong results of inputs that are no cases: some of those like the cases, of fresh ones, and of changed cases."""
    further, fresh = ([c for c in calls if c.comparable and c.problem] for calls in (facts.further, facts.fresh))
    found = [*further[:ELSEWHERE], *[call for call in fresh if not _is_small(call.expected.result)][:ELSEWHERE]]
    if len(found) >= FEWEST:
        return found
    changed = [c for c in facts.changed if c.comparable and c.problem and not _is_small(c.expected.result)]
    return [*found, *changed[:ELSEWHERE]]  # many of these are odd


def _is_small(result: Any) -> bool:
    """Whether a result is empty, or of one part alone: much is true of it."""
    size = getattr(result, "size", None)
    if isinstance(size, int):
        return size < 2
    return isinstance(result, list | tuple | dict | str | bytes) and len(result) < 2


def is_weak(seen: Seen) -> bool:
    """Whether a fact is one that other wrong results must confirm."""
    return not seen.plain and seen.rank >= PLAIN and bool(WEAK.match(seen.text))


def is_fact(seen: Seen) -> bool:
    """Whether a sentence says only what is there: that is so whatever the cause."""
    return seen.plain or seen.rank < PLAIN or bool(FACTS.match(seen.text) and not ENDS.match(seen.text))


def enough(seen: Seen, calls: Sequence[Call]) -> bool:
    """Whether so many different wrong values show a sentence that this is no chance."""
    if is_fact(seen) or len(calls) >= CALLS or NO_CHANCE.fullmatch(seen.title):
        return True
    pairs = {pair for call in calls for pair in differing(call.expected.result, call.outcome.result)}
    return (len(calls) > 1 or seen.title == RECOMPUTED) and len(pairs) >= DIFFERENT


def _are_many(calls: Sequence[Call]) -> bool:
    """Whether so many different wrong values are seen in these calls that a relation is hardly chance."""
    pairs: set[str] = set()
    for call in calls:
        pairs |= differing(call.expected.result, call.outcome.result)
        if len(pairs) >= MANY:
            return True
    return False


def _by_chance(seen: Seen, share: float, there: int, beyond: int, *, constant: bool, many: bool) -> bool:
    """Whether a sentence that this share of the wrong calls shows may be so by chance, or is not so elsewhere."""
    formula = seen.title.startswith(FORMULAS)
    if (formula and share < MOST) or (constant and OF_ITEM.sub("", seen.title).startswith(OF_NUMBERS)):
        return True
    if seen.title == RECOMPUTED:
        return False
    if formula and beyond:
        return there < OFTEN * beyond
    if share < ALMOST and not many and not NO_CHANCE.fullmatch(seen.title):
        return True
    return beyond >= FEWEST and (2 * there <= beyond if many else there < ALMOST * beyond)


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


def constant_where_wrong(calls: Sequence[Call], seen: Seen | None = None) -> bool:
    """Whether all wrong results are one and the same number, or that item of them of which a sentence speaks."""
    results = [call.outcome.result for call in calls]
    if seen and (item := OF_ITEM.match(seen.title)):
        results = [x[int(item[1])] if isinstance(x, tuple) and int(item[1]) < len(x) else None for x in results]
    numbers = all(isinstance(x, int | float | np.number) and not isinstance(x, bool) for x in results)
    return numbers and len(results) > 1 and all(x == results[0] for x in results)
