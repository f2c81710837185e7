"""More inputs, like those of the cases: on them two functions that seem to do the same may part."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .attempt import Outcome, attempt
from .compare import equal
from .spec import Case, Exercise, Function

TRIES = 20  # inputs that are made in each way
SEEDS = range(1, 5)  # of other random cases
SECONDS = 0.5  # for one call


def part_ways(spec: Exercise, one: Function, other: Function) -> bool:
    """Whether two functions give different results on an input that is no case."""
    return parts_from(spec, one)(other)


def parts_from(spec: Exercise, one: Function) -> Callable[[Function], bool]:
    """The same for several other functions: the results of the first are computed once."""
    known: dict[int, Outcome] = {}

    def parts(other: Function) -> bool:
        for place, case in enumerate(more_cases(spec)):
            if place not in known:
                known[place] = attempt(spec, one, case, SECONDS)
            mine, theirs = known[place], attempt(spec, other, case, SECONDS)
            if not mine.error and not theirs.error and not equal(mine.result, theirs.result, spec.tolerance):
                return True
        return False

    return parts


def further(spec: Exercise, function: Function) -> Iterator[tuple[Case, Outcome, Outcome]]:
    """The inputs beyond the cases on which a function's result is wrong, with the right outcome and its own."""
    for case in more_cases(spec):
        right, mine = attempt(spec, spec.oracle, case, SECONDS), attempt(spec, function, case, SECONDS)
        if not right.error and not mine.error and not equal(right.result, mine.result, spec.tolerance):
            yield case, right, mine


@functools.lru_cache(maxsize=256)
def more_cases(spec: Exercise) -> tuple[Case, ...]:
    """Other random cases; cases with shuffled arrays, two arguments exchanged, or one argument of another case.

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
    for seed in SEEDS:
        drawn = [new for new, old in zip(spec.cases(np.random.default_rng(seed)), cases) if not equal(new, old)]
        yield from drawn[: TRIES // len(SEEDS)]
    random = np.random.default_rng(0)
    shuffled = [tuple(_shuffled(part, random) for part in case) for case in cases]
    yield from [new for new, old in zip(shuffled, cases) if not equal(new, old)][:TRIES]
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
        yield from group[:: max(1, len(group) // TRIES)][:TRIES]


def _shuffled(value: Any, random: np.random.Generator) -> Any:
    """The values of an array in another order; anything else as it is."""
    if not isinstance(value, np.ndarray) or value.size < 2:
        return value
    return random.permutation(value.reshape(-1)).reshape(value.shape)
