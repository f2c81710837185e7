"""More inputs, made of those of the cases: on them two functions that seem to make the same mistake may part."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from .attempt import attempt
from .compare import equal
from .spec import Case, Exercise, Function

TRIES = 40  # inputs that are made
SECONDS = 0.5  # for one call


def part_ways(spec: Exercise, one: Function, other: Function) -> bool:
    """Whether two functions give different results on an input that is no case."""
    for case in more_cases(spec):
        a, b = attempt(spec, one, case, SECONDS), attempt(spec, other, case, SECONDS)
        if not a.error and not b.error and not equal(a.result, b.result, spec.tolerance):
            return True
    return False


@functools.lru_cache(maxsize=256)
def more_cases(spec: Exercise) -> tuple[Case, ...]:
    """Cases with two arguments exchanged, or with one argument of another case.

    Only those are kept on which the solution and the oracle give the same result: others may not be allowed.
    """
    if not spec.keeps_to_memory:
        return ()
    kept = []
    for case in _made(spec):
        right, mine = attempt(spec, spec.oracle, case, SECONDS), attempt(spec, spec.reference, case, SECONDS)
        if not right.error and not mine.error and equal(right.result, mine.result, spec.tolerance):
            kept.append(case)
    return tuple(kept)


def _made(spec: Exercise) -> Iterator[Case]:
    cases = spec.all_cases()
    width = min(map(len, cases))
    if width < 2:
        return
    pairs = [(i, j) for i in range(width) for j in range(i)]
    exchanged = [
        tuple(case[j] if k == i else case[i] if k == j else part for k, part in enumerate(case))
        for case in cases
        for i, j in pairs
        if type(case[i]) is type(case[j])
    ]
    mixed = [
        (*one[:i], two[i], *one[i + 1 :])
        for step in (1, 2)
        for one, two in zip(cases, cases[step:])
        for i in range(width)
        if type(one[i]) is type(two[i])
    ]
    for group in (exchanged, mixed):
        yield from group[:: max(1, len(group) // (TRIES // 2))][: TRIES // 2]
