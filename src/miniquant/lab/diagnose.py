"""Which mistake of the catalogue explains what a student's function did, and how sure that is."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .attempt import Outcome, attempt, outcomes_of, same_error
from .compare import equal
from .limit import TooSlow
from .more_cases import SECONDS, part_ways
from .spec import Finding, Function, Mistake
from .verdict import Call, Facts, rightness_of, size_of

NONE, WEAK, STRONG = 0, 1, 2
ENOUGH = 20  # so many other sets of wrong answers True and False could have given


@dataclass(frozen=True)
class Match:
    """Mistakes that do what the student's function did on ``explains`` of its wrong cases."""

    facts: Facts
    mistakes: tuple[Mistake, ...]
    explains: int
    beyond_chance: bool = False  # on the cases

    @cached_property
    def sure(self) -> bool:
        """Whether the agreement is beyond chance, and goes on on other inputs, which takes long to find out."""
        return self.beyond_chance and not _parts_ways(self.facts, self.mistakes[0])


def diagnose(facts: Facts) -> Match | None:
    """The mistakes that explain all wrong calls and spoil no right one; else the one that explains more than half.

    A function that refuses nothing yet may have another mistake as well: one that explains all its other wrong calls.
    """
    whole: list[tuple[int, float, Mistake]] = []
    part: list[tuple[int, Mistake]] = []
    for mistake in facts.spec.mistakes:
        grades = _agreement(facts, mistake)
        if grades is None:
            continue
        explained = [call for call, grade in zip(facts.wrong, grades) if grade]
        weight = evidence(facts, [call for call, grade in zip(facts.wrong, grades) if grade == STRONG])
        weight = weight or _evidence_of_refusals(facts, explained)
        if weight == 0:
            continue  # only refusals, and whoever refuses everything would get the name
        if len(explained) == len(facts.wrong):
            whole.append((grades.count(STRONG), weight, mistake))
        elif weight >= 1 and any(call.comparable for call in explained):
            rest = [call for call, grade in zip(facts.wrong, grades) if not grade]
            largest = 2 * len(explained) > len(facts.wrong) and _largest(facts).issubset(
                call.number for call in explained
            )
            if largest or all(call.refusal for call in rest):
                part.append((len(explained), mistake))
    if whole:
        best = max(strong for strong, _, _ in whole)
        alike = [(weight, mistake) for strong, weight, mistake in whole if strong == best]
        beyond_chance = len(alike) == 1 and alike[0][0] >= 1
        return Match(facts, tuple(mistake for _, mistake in alike), len(facts.wrong), beyond_chance)
    if part:
        most_explained = max(n for n, _ in part)
        return Match(facts, tuple(m for n, m in part if n == most_explained), most_explained)
    return None


def _parts_ways(facts: Facts, mistake: Mistake) -> bool:
    """Whether the student's function and a mistake that agrees with it on all cases differ on other inputs."""
    assert callable(mistake.wrong)
    if facts.function is mistake.wrong:
        return False
    return part_ways(facts.spec, facts.function, mistake.wrong) or not gives_the_same(facts, mistake.wrong, facts.calls)


def gives_the_same(facts: Facts, function: Function, calls: Sequence[Call]) -> bool:
    """Whether another function gives what the student's gives on inputs by which nothing is found; it raises where
    that one raises. On bad input only if some of the calls on which the two agree have one.
    """
    bad_too = any(call.refusal for call in calls)
    for call in (*facts.fresh, *facts.changed):
        if call.refusal and not bad_too:
            continue
        theirs, mine = attempt(facts.spec, function, call.case, SECONDS), call.outcome
        if isinstance(theirs.error, TooSlow) or isinstance(mine.error, TooSlow):
            continue
        if bool(theirs.error) != bool(mine.error) or not equal(theirs.result, mine.result, facts.spec.tolerance):
            return False
    return True


def _agreement(facts: Facts, mistake: Mistake) -> list[int] | None:
    """For each wrong call how well the mistake agrees with it; ``None`` if it spoils a call that is right."""
    assert callable(mistake.wrong)
    outcomes, right = outcomes_of(facts.spec, mistake.wrong), rightness_of(facts.spec, mistake.wrong)
    if any(not right[call.number] for call in facts.calls if not call.problem):
        return None
    grades = []
    for call in facts.wrong:
        theirs, mine = outcomes[call.number], call.outcome
        if right[call.number]:
            grades.append(NONE)
        elif theirs.error or mine.error:
            grades.append(same_error(theirs.error, mine.error))
        else:
            same = (mine.view, mine.kept, mine.mutated) == (theirs.view, theirs.kept, theirs.mutated)
            same = same and equal(theirs.result, mine.result, facts.spec.tolerance)
            grades.append(STRONG if same else WEAK if call.refusal and _both_unlike(theirs, mine) else NONE)
    return grades


def _both_unlike(theirs: Outcome, mine: Outcome) -> bool:
    """Whether two results are objects of one type that equal nothing but themselves."""
    if type(theirs.result) is not type(mine.result):
        return False
    try:
        return not equal(copy.deepcopy(mine.result), mine.result)
    except Exception:
        return True


def evidence(facts: Facts, calls: list[Call]) -> float:
    """How much calls on which two functions agree speak for it that they make the same mistake: 1 is enough.

    A result with many values counts 1. One of few possible results (True, None, 0, an empty list) counts little by
    itself: what speaks then is which calls are wrong, among all of them. An error of Python counts a half.
    """
    if not calls:
        return 0.0
    results = [call for call in calls if call.comparable]
    findings = [call for call in calls if isinstance(call.outcome.error, Finding)]
    if any(_rich(call.outcome.result) for call in results) or findings:
        return 1.0
    accepted = [call for call in calls if call.refusal and not call.outcome.error]
    bad = sum(call.refusal for call in facts.calls)
    if results and math.comb(len(facts.calls) - bad, len(results)) >= ENOUGH:
        return 1.0
    if accepted and math.comb(bad, len(accepted)) >= ENOUGH:
        return 1.0
    return 0.5


def _largest(facts: Facts) -> set[int]:
    """The largest of the cases with a wrong result: small ones look alike for more than one mistake."""
    results = [call for call in facts.wrong if call.comparable]
    return {max(results, key=lambda call: size_of(call.case)).number} if results else set()


def _evidence_of_refusals(facts: Facts, calls: list[Call]) -> float:
    """The same for calls that raised in the student's own words: a half if some good inputs were refused, and not all.

    An error of a kind that nobody asked for counts a half, too.
    """
    good = [call for call in facts.calls if not call.refusal]
    refused = [call for call in calls if not call.refusal]
    strange = any(isinstance(call.outcome.error, AssertionError) for call in calls)
    return 0.5 if strange or 0 < len(refused) < len(good) else 0.0


def _rich(value: Any) -> bool:
    """Whether a result can hardly be the same by chance."""
    if value is None or isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, int | float | np.number):
        size: Any = abs(value)
        return bool(1 < size < math.inf)
    if isinstance(value, str | bytes):
        return len(value) > 1
    if isinstance(value, list | tuple):
        return len(value) > 1 or any(_rich(part) for part in value)
    if isinstance(value, dict):
        return bool(value)
    return bool(getattr(value, "size", 2) and np.any(np.asarray(value) != 0)) if hasattr(value, "shape") else True
