"""What the outcomes of a wrong function show, whatever the exercise. A sentence is true of all the calls it is about.

Nothing here reads the student's code: what is said can be verified from the calls alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..limit import TooSlow
from ..verdict import Call, Facts, distinct
from .classes import FEWEST, NEARLY, at_least_where, right_where, where
from .contrast import contrast, without_contrast
from .errors import of_bad_input, of_good_input
from .relations import LISTED, listed
from .results import is_choice, is_side, look_at, of_results
from .seen import LITTLE, Seen, one_of, some

__all__ = ["Seen", "see"]

FEW = 3  # wrong cases, of which a sentence often says no more than they show
SAYS_LITTLE = 20  # from this rank on it may say no more, too
UNKNOWN = 90  # from this rank on, a sentence says only that results are wrong


def see(facts: Facts) -> list[Seen]:
    """What the wrong calls show: first wrong results or errors on good input, then what was done with bad input."""
    results = [call for call in facts.wrong if call.comparable]
    raised = [call for call in facts.wrong if not call.refusal and call.outcome.error]
    bad = [call for call in facts.wrong if call.refusal]
    slow = [call for call in raised if isinstance(call.outcome.error, TooSlow)]
    good = [call for call in facts.calls if not call.refusal]
    of_wrong, of_raised, of_accepted = [], [], []
    if results:
        found = of_results(facts, results)
        proper = [call for call in results if not is_side(facts, call)]
        side = [call for call in results if is_side(facts, call)]
        of_wrong = [
            _sentence(facts, seen, calls, side if is_side(facts, calls[0]) else proper, good) for seen, calls in found
        ]
        of_wrong += _changed_as_well(facts, results)
    if raised:
        sentence = _sentence(facts, *of_good_input(facts, slow or raised), slow or raised, good)
        of_raised = [replace(sentence, rank=LITTLE - 1)]
    if bad:
        sentence = _sentence(facts, *of_bad_input(facts, bad), bad, [c for c in facts.calls if c.refusal])
        of_accepted = [replace(sentence, rank=LITTLE - 1)]
    first = [*of_raised, *of_wrong] if len(raised) > len(results) else [*of_wrong, *of_raised]
    said = [*first, *of_accepted, *_of_both(facts, results, raised, good, first)]
    return [*said[:1], *(without_contrast(seen) if seen in of_wrong else seen for seen in said[1:])]


def _changed_as_well(facts: Facts, results: Sequence[Call]) -> list[Seen]:
    """The argument that is changed in cases with a wrong result, too; an observed function may be called twice."""
    changed = [call for call in results if call.outcome.change and not is_side(facts, call)]
    places = {call.outcome.change.index for call in changed if call.outcome.change}
    if len(places) != 1:
        return []
    name, n = facts.names[places.pop()], len(changed)
    of = len([call for call in results if not is_side(facts, call)])
    cases = f"{of} cases with a wrong result"
    which = f"all {cases}" if n == of > 1 else f"{n} of the {cases}" if of > 1 else "the one case with a wrong result"
    text = f"In {which}, the function changes its argument `{name}`, too."
    return [Seen("argument changed", text, rank=LITTLE)]


def _of_both(
    facts: Facts, results: Sequence[Call], raised: Sequence[Call], good: Sequence[Call], said: Sequence[Seen]
) -> list[Seen]:
    """Which good inputs are wrong in one way or the other, if no sentence says which of them show what it is about."""
    if not results or not raised or any("inputs tried" in seen.text for seen in said):
        return []
    beyond = _beyond(facts, good)
    fresh = _usual(facts.fresh, good)
    wrong, changed = [*results, *raised, *(call for call in beyond if call.problem)], _usual(facts.changed, good)
    changed = [call for call in changed if not call.refusal]
    place, holds = where(facts, wrong, [*good, *beyond], fresh, changed)
    others = _wrong_elsewhere(facts, [*good, *beyond, *fresh, *changed], good[0])
    if not place or not all(map(holds, others)):
        return []
    text = f"Of the good inputs tried, {_those(place, 'are wrong in one way or the other')}."
    return [Seen("which inputs", text, rank=LITTLE)]


def _sentence(facts: Facts, seen: Seen, calls: Sequence[Call], wrong: Sequence[Call], among: Sequence[Call]) -> Seen:
    """The whole sentence: what is seen, on how many cases, and which ones these are.

    ``calls`` show it, of the ``wrong`` ones, ``among`` all calls of their kind.
    """
    seen = replace(seen, covers=frozenset(call.number for call in calls))
    every = sum(call.problem is not None for call in among)
    whole = every == len(wrong)  # otherwise others of these calls are wrong in another way
    beyond, fresh, changed = _others(facts, among, wrong[0], whole)
    wrong_beyond = [call for call in beyond if call.problem and (whole or _is_alike(facts, call, wrong[0]))]
    every_wrong = [*wrong, *wrong_beyond]
    (place, holds), for_these = where(facts, every_wrong, [*among, *beyond], fresh, changed), ""
    counted = [*among, *beyond, *fresh, *changed]
    others = _wrong_elsewhere(facts, counted, wrong[0])
    if not place and wrong[0].comparable and (alike := _with_such_answers(wrong, among)):
        missed = list(dict.fromkeys(call.expected.result for call in alike))
        near, those, these = (
            [call for call in calls if call.expected.result in missed] for calls in (beyond, fresh, changed)
        )
        near_wrong = [*wrong, *(call for call in near if call in wrong_beyond)]
        place, holds = where(facts, near_wrong, [*alike, *near], those, these)
        if place:
            for_these, counted = f" for which {one_of(missed)} is right", [*alike, *near, *those, *these]
            others = [call for call in others if call.expected.result in missed]
        elif all(isinstance(call.expected.result, bool) for call in among):
            place, holds = where(facts, every_wrong, [*among, *beyond], fresh, changed, pairs=True)
    kind = "cases" if len(among) == len(facts.calls) else "bad inputs" if wrong[0].refusal else "good inputs"
    tried = f"of the {kind.replace('cases', 'inputs')} tried"
    told = wrong[0].refusal and ("inputs" in seen.text or "nothing is refused" in seen.text)  # on how many
    told = told or "tried" in seen.text
    if len(calls) < len(wrong):
        text = seen.text if told else f"{seen.text}, on at least {len(calls)} of the {every} wrong {kind}"
        part = ""
        if len(calls) >= FEWEST and not told:  # the other wrong ones may show it among other things
            shows = partial(_shows, facts, seen, {type(call.outcome.error) for call in calls})
            part = at_least_where(facts, calls, among, [*facts.further, *facts.fresh], changed, shows)
        return _ended(seen, f"{text}: {tried}, on all those {part}" if part else text)
    text = seen.text if told else f"{seen.text}, {some(len(wrong), len(among), kind)}"
    if wrong[0].comparable and not all(map(holds, others)) and any(call.outcome.error for call in others):
        tried += " that give a result"
        others = [call for call in others if call.comparable]
    wrong_there = whole and all(map(holds, others))
    if place and (not any(map(holds, others)) or wrong_there):
        if place in text:
            return _ended(seen, text)
        text += f"; {tried}{for_these}, {_those(place, 'are wrong' if wrong_there else _way(facts, wrong[0]))}"
        if wrong_there:
            counted = distinct([*counted, *others])
            n = sum(call.problem is not None for call in counted)
            text += f" ({n} of {len(counted)}, cases and further inputs)"
    elif not place and whole:
        text += _in_a_list(facts, seen, wrong, among)
        more = [*changed, *others]
        if seen.rank >= UNKNOWN and (part := right_where(facts, every_wrong, [*among, *beyond], fresh, more)):
            text += f"; {tried}, {part}"
        elif _wants_contrast(seen, wrong):
            seen = replace(seen, after=contrast(facts, wrong))
    return _ended(seen, text)


def _wants_contrast(seen: Seen, wrong: Sequence[Call]) -> bool:
    """Whether a sentence says little; one on every input tried may not be so of an input that is tried later."""
    little = seen.rank >= SAYS_LITTLE or len(wrong) <= FEW
    return little and wrong[0].comparable and not seen.after and "tried" not in seen.text


def _shows(facts: Facts, seen: Seen, errors: set[type], call: Call) -> bool:
    """Whether a wrong call shows what is seen: the same error, or a result of which it is true."""
    if type(call.outcome.error) not in errors:
        return False
    return not call.comparable or is_side(facts, call) or seen in look_at(facts, call)


def _way(facts: Facts, wrong: Call) -> str:
    """In what way calls are wrong, in as few words as are known to be true of inputs beyond the cases."""
    if wrong.refusal or isinstance(wrong.outcome.error, TooSlow):
        return "show this"
    if wrong.outcome.error:
        return "raise an error"
    return "show this" if is_side(facts, wrong) else "have a wrong result"


def _wrong_elsewhere(facts: Facts, counted: Sequence[Call], wrong: Call) -> list[Call]:
    """Inputs beyond the cases on which the function is wrong in another way than it is on those that are counted."""
    known = {call.number for call in counted}
    every = (*facts.further, *facts.fresh, *facts.changed)
    return [c for c in every if c.problem and c.refusal == wrong.refusal and c.number not in known]


def _beyond(facts: Facts, among: Sequence[Call]) -> list[Call]:
    """The calls beyond the cases, without those that raised what none of these calls did: such input is odd."""
    return _usual(facts.further, among)


def _usual(calls: Sequence[Call], among: Sequence[Call]) -> list[Call]:
    """Calls without those that raised what none of these others did."""
    kinds = {type(call.outcome.error) for call in among}
    return [call for call in calls if not call.outcome.error or type(call.outcome.error) in kinds]


def _others(facts: Facts, among: Sequence[Call], wrong: Call, whole: bool) -> tuple[list[Call], list[Call], list[Call]]:
    """The calls that are no cases and good or bad as these are: further ones, fresh ones, cases with a small change.

    Unless all that is wrong is meant (``whole``), without fresh and changed ones that are wrong in another way.
    """
    changed = _usual([call for call in facts.changed if call.refusal == wrong.refusal], among)
    further, fresh = ([], []) if wrong.refusal else (_beyond(facts, among), _usual(facts.fresh, among))
    if whole:
        return further, fresh, changed
    fresh, changed = ([c for c in calls if not c.problem or _is_alike(facts, c, wrong)] for calls in (fresh, changed))
    return further, fresh, changed


def _is_alike(facts: Facts, call: Call, wrong: Call) -> bool:
    """Whether a wrong call is wrong in the same way as another: both raised, or both have a wrong result."""
    if call.comparable != wrong.comparable:
        return False
    return not wrong.comparable or is_side(facts, call) == is_side(facts, wrong)


def _in_a_list(facts: Facts, seen: Seen, wrong: Sequence[Call], among: Sequence[Call]) -> str:
    """Of answers True and False, and of numbers without a pattern, a list of few wrong inputs."""
    if all(isinstance(call.expected.result, bool) for call in among):
        return listed(facts.names, wrong)
    numbers = all(isinstance(call.expected.result, int | float | np.number) for call in among)
    few = len(wrong) <= LISTED and len(wrong) < len(among)
    return listed(facts.names, wrong) if numbers and few and seen.rank >= UNKNOWN else ""


def _with_such_answers(wrong: Sequence[Call], among: Sequence[Call]) -> list[Call]:
    """The calls whose right answer is one that is missed; none, if answers are not few, or all of them are missed."""
    if not is_choice(among) or not all(isinstance(call.expected.result, str | bool) for call in among):
        return []
    missed = {call.expected.result for call in wrong}
    alike = [call for call in among if call.expected.result in missed]
    return alike if len(alike) < len(among) else []


def _those(place: str, verb: str) -> str:
    """``exactly those where … are wrong``, or ``all but those where … are wrong``: what is true of the inputs tried."""
    if place.startswith(NEARLY):
        return f"nearly all of those {place.removeprefix(NEARLY)} {verb}, and no others"
    if place.startswith("everywhere but "):
        return f"all but those {place.removeprefix('everywhere but ')} {verb}"
    return f"exactly those {place} {verb}"


def _ended(seen: Seen, text: str) -> Seen:
    """The text as a sentence, and the one that follows it."""
    return replace(seen, text=f"{text[0].upper()}{text[1:]}.{' ' * bool(seen.after)}{seen.after}")
