"""Which of the sentences on wrong results is said: not one that fits the cases by chance, and other inputs do not show.

The thresholds for chance are all here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..verdict import Call, Facts
from .seen import Seen, most_common

FORMULAS = ("something else computed", "another quotient", "another divisor", "a formula of", "digits joined")
ELSEWHERE = 12  # so many wrong results beyond the cases are looked at
FEWEST = 4  # of them, to drop a sentence that is no formula
MOST, OFTEN = 0.8, 0.75  # so many wrong results of the cases must show a formula, and there such a part of that share


def most_telling(
    facts: Facts, calls: Sequence[Call], sets: list[set[Seen]], everywhere: set[Seen], look: Callable[[Call], set[Seen]]
) -> tuple[Seen | None, list[int]]:
    """The sentence that most wrong calls show, here and on inputs beyond the cases, and the places of these calls.

    ``sets`` has what each call shows, ``everywhere`` what was found out from all calls together.
    """
    others: list[set[Seen]] | None = None
    while True:
        seen, places = most_common(sets, share=0.5, least=min(len(sets), 3))  # two of many may look alike by chance
        if not seen or seen in everywhere:
            return seen, places
        if others is None:
            beyond = [call for call in facts.further if call.comparable and call.problem]
            others = [look(call) for call in beyond[:ELSEWHERE]]
        if not _by_chance(seen, len(places) / len(sets), others, constant_where_wrong(calls)):
            return seen, places
        sets = [found - {seen} for found in sets]


def _by_chance(seen: Seen, share: float, others: Sequence[set[Seen]], constant: bool) -> bool:
    """Whether a sentence that this share of the wrong calls shows may be so by chance."""
    formula = seen.title.startswith(FORMULAS)
    if formula and (share < MOST or constant):
        return True
    if not others or (len(others) < FEWEST and not formula):
        return False
    return sum(seen in found for found in others) < OFTEN * share * len(others)


def constant_where_wrong(calls: Sequence[Call]) -> bool:
    """Whether all wrong results are one and the same number."""
    results = [call.outcome.result for call in calls]
    numbers = all(isinstance(x, int | float | np.number) and not isinstance(x, bool) for x in results)
    return numbers and len(results) > 1 and all(x == results[0] for x in results)
