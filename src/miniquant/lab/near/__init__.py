"""Near solutions: small variants of an exercise's solution, one of which may do exactly what a student's function does.

Nothing here is about the student's code, only about what it returns: "your results are those of a solution that …".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..attempt import cases_of
from ..detect.results import is_choice
from ..diagnose import evidence, gives_the_same
from ..limit import TooSlow
from ..more_cases import agreed_from
from ..source import does_otherwise
from ..spec import Function
from ..verdict import Call, Facts, problem, size_of
from .arrays import of_parts, of_values
from .statements import UNKNOWN_NAMES
from .variants import Variant, axes_of, cost, variants

HUNG = 3  # after so many variants that do not end, no more are tried
CHEAP = 300  # lines that the solution runs in a case that can be tried with every variant
SAID = 30  # cases in which it is looked how many axes an array has
LINES = 150_000  # so many lines, counted as the solution runs them, are tried in all


@dataclass(frozen=True)
class Near:
    """A solution whose results are those of the student's function: what it does, and where the two agree."""

    text: str
    cases: str
    covers: frozenset[int]  # the numbers of these calls


def near(facts: Facts) -> Near | None:
    """A solution whose results are those of the student's function, if one is known.

    On every case the two agree: both are right, or they give the same result, or both raise. If there is none that
    agrees on bad input as well, one that agrees on all good input, and refuses what the student's function refuses.
    """
    good = [call for call in facts.calls if not call.refusal]
    wrong = [call for call in good if call.comparable and call.problem]
    if not wrong or evidence(facts, wrong) < 1:
        return None
    if is_choice(good) and not all(isinstance(call.expected.result, bool) for call in good):
        return None  # one of few texts: too many solutions give the same
    costs = {call.number: cost(facts.spec, call.number) for call in good}
    first = min(wrong, key=lambda call: (costs[call.number], size_of(call.case), call.number))
    rest = sorted((call for call in good if call is not first), key=lambda call: (costs[call.number], call.number))
    cheaper = [call for call in rest if costs[call.number] < costs[first.number]] if costs[first.number] > CHEAP else []
    order = [*cheaper, first, *(call for call in rest if call not in cheaper)]
    alike = []
    hung = spent = 0
    for variant in variants(facts.spec):
        for call in order:
            spent += costs[call.number]
            hung += isinstance(variant.outcome(facts.spec, call.number).error, TooSlow)
            if not _agree(facts, variant, call):
                break
        else:
            alike.append(variant)
        if hung >= HUNG or spent >= LINES:
            break
    if not alike:
        return None
    bad = [call for call in facts.calls if call.refusal]
    whole = [variant for variant in alike if all(_agree(facts, variant, call) for call in bad)]
    agreed = agreed_from(facts.spec, facts.function)
    refused = [call for call in bad if call.problem is None]
    as_strict = whole or [variant for variant in alike if all(_agree(facts, variant, call) for call in refused)]
    counts = {variant: agreed(variant.function) for variant in as_strict}
    calls = facts.calls if whole else tuple(good)
    agreeing = [variant for variant, n in counts.items() if n is not None]
    alike = [variant for variant in agreeing if gives_the_same(facts, variant.function, calls)]
    if not alike:
        return None
    found = [_least(facts, variant, calls, agreed) for variant in alike]
    found = [variant for variant in found if not does_otherwise(variant.phrase, facts.function, facts.spec.reference)]
    if not found:
        return None
    least = min(variant.rank for variant in found)
    likely = [variant for variant in found if variant.rank <= least + 0.3]
    phrases = list(dict.fromkeys(_said(variant, facts, order) for variant in likely))
    if UNKNOWN_NAMES in phrases[0] or "in place of another value" in phrases[0]:
        return None  # says nothing
    kinds = {phrase.split(" of ")[0]: phrase for phrase in reversed(phrases)}  # one step at two places is said once
    text = f"a solution that {', or that '.join([phrase for phrase in phrases if phrase in kinds.values()][:2])}"
    covers = frozenset(call.number for call in calls)
    cases = f"all {len(facts.calls)} cases" if whole else f"all {len(good)} cases with good input"
    if len(facts.calls) < len(cases_of(facts.spec)):  # none is tried after one that never ends
        cases = f"all {len(facts.calls)} cases tried" if whole else f"all {len(good)} cases tried with good input"
    more = min(counts[variant] or 0 for variant in alike)
    return Near(text, f"on {cases}{f' and on {more} further inputs' if more else ''}", covers)


def _said(variant: Variant, facts: Facts, calls: Sequence[Call]) -> str:
    """What a variant does: an array on the way has rows and columns if it has two axes in a case, and no more."""
    axes: set[int] = set()
    for call in calls[:SAID]:
        axes |= axes_of(facts.spec, variant.function, call.case)
        if axes - {1}:
            break
    if axes == {1}:
        return of_values(variant.phrase)
    return of_parts(variant.phrase) if max(axes, default=0) > 2 else variant.phrase


def _least(facts: Facts, variant: Variant, calls: Sequence[Call], agreed: Callable[[Function], int | None]) -> Variant:
    """The variant, or of two known mistakes the one that does the same by itself: on these calls and beyond them."""
    for mistake in variant.mistakes:
        assert callable(mistake.wrong)
        alone = Variant(f"makes a known mistake: {mistake.name}", variant.rank, mistake.wrong)
        same = all(_agree(facts, alone, call) for call in calls) and agreed(mistake.wrong) is not None
        if same and gives_the_same(facts, mistake.wrong, calls):
            return alone
    return variant


def _agree(facts: Facts, variant: Variant, call: Call) -> bool:
    """Whether a variant does on a case what the student's function did there."""
    theirs = variant.outcome(facts.spec, call.number)
    if call.problem is None:
        return problem(facts.spec, call.case, theirs, call.expected) is None
    if call.outcome.error is None and (theirs.view != call.outcome.view or call.outcome.kept):
        return False
    return theirs.same_as(call.outcome, facts.spec.tolerance)
