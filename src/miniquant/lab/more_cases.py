"""More inputs, like those of the cases: on them two functions that seem to do the same may part."""

from __future__ import annotations

import copy
import functools
import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .attempt import Outcome, attempt
from .compare import equal
from .limit import TooSlow
from .spec import Case, Exercise, Function

TRIES = 20  # inputs that are made in each way
SEEDS = range(1, 5)  # of other random cases
SECONDS = 0.5  # for one call
SLOW = 2  # after so many calls that take longer, no more are made


def part_ways(spec: Exercise, one: Function, other: Function) -> bool:
    """Whether two functions give different results on an input that is no case."""
    return agreed_from(spec, one)(other) is None


def agreed_from(spec: Exercise, one: Function) -> Callable[[Function], int | None]:
    """For other functions, on how many inputs that are no case they give what the first one gives; ``None`` if not on
    all. The results of the first are computed once.
    """
    known: dict[int, Outcome] = {}

    def agreed(other: Function) -> int | None:
        n = 0
        for place, (case, _) in enumerate(more_cases(spec)):
            if place not in known:
                known[place] = attempt(spec, one, case, SECONDS)
            mine, theirs = known[place], attempt(spec, other, case, SECONDS)
            if isinstance(mine.error, TooSlow) or isinstance(theirs.error, TooSlow):
                continue
            if bool(mine.error) != bool(theirs.error) or not equal(mine.result, theirs.result, spec.tolerance):
                return None
            n += not mine.error
        return n

    return agreed


def further(spec: Exercise, function: Function) -> Iterator[tuple[Case, Outcome, Outcome]]:
    """The inputs beyond the cases, each with the right outcome and a function's own, until calls take too long."""
    return tried(spec, function, more_cases(spec))


def tried(
    spec: Exercise, function: Function, inputs: Iterable[tuple[Case, Outcome]]
) -> Iterator[tuple[Case, Outcome, Outcome]]:
    """Some inputs with their right outcomes, and with a function's own, until calls take too long."""
    slow = 0
    for case, right in inputs:
        mine = attempt(spec, function, case, SECONDS)
        slow += isinstance(mine.error, TooSlow)
        if slow == SLOW:
            return
        yield case, right, mine


@functools.lru_cache(maxsize=256)
def more_cases(spec: Exercise) -> tuple[tuple[Case, Outcome], ...]:
    """Other random cases; cases with shuffled arrays, two arguments exchanged, or one argument of another case.

    Each comes with its right outcome. Only those are kept on which the solution and the oracle give the same result,
    and of which the lesson's own words (its fields, factors, quantities and so on) can be said: others may not be
    allowed.
    """
    if not spec.keeps_to_memory:
        return ()
    return tuple(allowed(spec, _made(spec)))


def allowed(spec: Exercise, made: Iterable[Case], known: Iterable[Case] = ()) -> Iterator[tuple[Case, Outcome]]:
    """Those of some inputs that are like the cases, as far as it is known, with their right outcomes.

    Each comes once, and none that is a case or in ``known``: sentences count inputs.
    """
    is_like = like_the_cases(spec)
    seen = {pickle.dumps(case) for case in (*spec.all_cases(), *known)}
    for case in made:
        if not is_like(case) or (key := pickle.dumps(case)) in seen:
            continue
        seen.add(key)
        mine = attempt(spec, spec.reference, case, SECONDS)
        if mine.error:  # the oracle, which takes longer, is not asked
            continue
        right = attempt(spec, spec.oracle, case, SECONDS)
        if right.error or not equal(right.result, mine.result, spec.tolerance):
            continue
        if is_known(spec, case, right):
            yield case, right


@functools.lru_cache(maxsize=256)
def like_the_cases(spec: Exercise) -> Callable[[Case], bool]:
    """Whether the integers of an input, and of its arrays, lie within those of the cases, and its arrays are alike.

    Arguments that are of one length in every case are of one length in the input, too.
    """
    ranges, always, spans, pairs = _ranges(spec), _always(spec), _spans(spec), _of_one_length(spec)

    def is_like(case: Case) -> bool:
        if any(_length(case[i]) != _length(case[j]) for i, j in pairs):
            return False
        if any(not all(holds(part) for holds in tests) for part, tests in zip(case, always)):
            return False
        if any(
            _is_whole(part) and not (low <= part.min() and part.max() <= high) for part, (low, high) in zip(case, spans)
        ):
            return False
        return all(type(part) is not int or low <= part <= high for part, (low, high) in zip(case, ranges))

    return is_like


def is_known(spec: Exercise, case: Case, right: Outcome | None) -> bool:
    """Whether what the lesson says of its cases can be said of this input, too; its two factors give the result.

    Of bad input, which has no right result, only what it says of inputs.
    """
    try:
        for said in (spec.quantities, spec.traits, *((spec.fields, spec.places) if right else ())):
            if said:
                said(*copy.deepcopy(case))
        if right is None:
            return True
        if spec.parts:
            spec.parts(copy.deepcopy(right.result), *copy.deepcopy(case))
        if spec.factors:
            one, two = spec.factors(*copy.deepcopy(case)).values()
            product = np.asarray(one, float) * np.asarray(two, float)
            return bool(np.allclose(product.reshape(-1), np.asarray(right.result, float).reshape(-1), rtol=1e-5))
    except Exception:
        return False
    return True


def _ranges(spec: Exercise) -> list[tuple[int, int]]:
    """For each argument the smallest and the largest integer that it is in a case: others may make no sense."""
    found = []
    for values in zip(*spec.all_cases()):
        whole = [value for value in values if type(value) is int]
        found.append((min(whole, default=0), max(whole, default=-1)))
    return found


def _spans(spec: Exercise) -> list[tuple[int, int]]:
    """For each argument the smallest and the largest integer in its arrays: int8 may stand for integers of 4 bits."""
    found = []
    for values in zip(*spec.all_cases()):
        arrays = [value for value in values if _is_whole(value)]
        found.append((min((int(x.min()) for x in arrays), default=0), max((int(x.max()) for x in arrays), default=-1)))
    return found


def _is_whole(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.size > 0


def _always(spec: Exercise) -> list[list[Callable[[Any], bool]]]:
    """For each argument what is so in every case: a matrix that is symmetric there is so in each input."""
    return [[test for test in ALWAYS if all(map(test, column))] for column in zip(*spec.all_cases())]


def _of_one_length(spec: Exercise) -> list[tuple[int, int]]:
    """The places of two arguments that have as many items, or rows, in every case."""
    lengths = [[_length(part) for part in column] for column in zip(*spec.all_cases())]
    known = [i for i, column in enumerate(lengths) if None not in column]
    return [(i, j) for i, j in itertools.combinations(known, 2) if lengths[i] == lengths[j]]


def _length(value: Any) -> int | None:
    """The number of items of a list or tuple, or of the rows of an array."""
    return len(value) if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim) else None


def _is_square(m: Any) -> bool:
    return (
        isinstance(m, np.ndarray) and m.dtype in (np.float32, np.float64) and m.ndim == 2 and m.shape[0] == m.shape[1]
    )


def _is_symmetric(m: Any) -> bool:
    return _is_square(m) and np.allclose(m, m.T)


def _is_positive(m: Any) -> bool:
    """Whether a symmetric matrix is positive definite."""
    return _is_symmetric(m) and bool((np.linalg.eigvalsh(m) > 0).all())


def _is_orthogonal(m: Any) -> bool:
    return _is_square(m) and np.allclose(m @ m.T, np.eye(len(m)))


def _is_triangular(m: Any) -> bool:
    return _is_square(m) and np.array_equal(m, np.triu(m)) and bool(np.diag(m).all())


def _has_even_rows(m: Any) -> bool:
    """Whether an array has pairs alone along its last axis."""
    return isinstance(m, np.ndarray) and m.ndim > 0 and m.shape[-1] % 2 == 0


def _is_not_empty(m: Any) -> bool:
    return isinstance(m, np.ndarray) and m.size > 0


ALWAYS = (
    *(_is_square, _is_symmetric, _is_positive, _is_orthogonal, _is_triangular),
    *(_has_even_rows, _is_not_empty),
)


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
    """The values of an array in another order; anything else, and an array of bytes, whose places matter, as it is."""
    if not isinstance(value, np.ndarray) or value.size < 2 or value.dtype == np.uint8:
        return value
    return random.permutation(value.reshape(-1)).reshape(value.shape)
