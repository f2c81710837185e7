"""Is a function right wherever an input has a property? Inputs made for this question may show that it is not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from ..attempt import attempt
from ..limit import spent
from ..more_cases import SECONDS
from ..pair_cases import changes_of, pools_of
from ..verdict import Call, Facts, problem
from .contrast import one_by_one
from .properties import properties_of

CASES = 6  # of which changed inputs are made
TRIES = 80  # changes of each
LIMIT = 2.0  # seconds of the processor


def is_wrong_elsewhere(facts: Facts, name: str, wrong: Sequence[Call]) -> bool:
    """Whether a small change of a wrong case makes an input that has a property, and whose result is wrong still."""
    if not facts.spec.keeps_to_memory:
        return False
    late, cases = spent(LIMIT), [call for call in wrong if call.number < len(facts.calls)]
    for call in cases[:CASES]:
        more = one_by_one(call.case, pools_of(facts.spec))
        for pair in islice(changes_of(facts.spec, call.number, more), TRIES):
            if late():
                return False
            right = pair.right
            if right.error or not properties_of(facts.spec, pair.case, right.result).get(name, False):
                continue
            mine = attempt(facts.spec, facts.function, pair.case, SECONDS)
            if not mine.error and problem(facts.spec, pair.case, mine, right):
                return True
    return False
