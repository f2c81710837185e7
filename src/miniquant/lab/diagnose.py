"""Which mistake of the catalogue explains what a student's function did."""

from __future__ import annotations

from .attempt import Outcome, outcomes_of
from .spec import Exercise, Mistake


def diagnose(spec: Exercise, outcomes: list[Outcome], needed: list[int] | None = None) -> Mistake | None:
    """The mistake of the catalogue that gives what the student's function gave: in each call, or each needed.

    Of several that do, it is the one that agrees with the most calls, and the first of these.
    """
    found: Mistake | None = None
    most = 0
    for mistake in spec.mistakes:
        same = _agreements(spec, mistake, outcomes)
        if all(same if needed is None else (same[i] for i in needed)) and sum(same) > most:
            found, most = mistake, sum(same)
    return found


def diagnose_in_part(
    spec: Exercise, outcomes: list[Outcome], wrong: set[int], shown: int
) -> tuple[Mistake | None, int]:
    """The mistake that explains the wrong call shown and the most of the others, and that spoils no right one.

    It must explain at least half of the wrong calls. ``wrong`` and ``shown`` number the calls; returned beside it is
    how many it explains.
    """
    best: Mistake | None = None
    most = 0
    for mistake in spec.mistakes if not outcomes[shown].error else ():
        same = {number for number, alike in enumerate(_agreements(spec, mistake, outcomes)) if alike}
        if shown in same and len(same | wrong) == len(outcomes) and len(same & wrong) >= max(len(wrong) / 2, most + 1):
            best, most = mistake, len(same & wrong)
    return best, most


def _agreements(spec: Exercise, mistake: Mistake, outcomes: list[Outcome]) -> list[bool]:
    """For each call, whether the mistake gives what the student's function gave."""
    assert callable(mistake.wrong)
    pairs = zip(outcomes_of(spec, mistake.wrong), outcomes)
    return [wrong.same_as(outcome, spec.tolerance) for wrong, outcome in pairs]
