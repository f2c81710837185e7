"""What the outcomes of a wrong function show, whatever the exercise. A sentence is true of all the calls it is about.

Nothing here reads the student's code: what is said can be verified from the calls alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..limit import TooSlow
from ..verdict import Call, Facts
from .classes import nearly, where
from .errors import of_bad_input, of_good_input
from .relations import LISTED, listed
from .results import is_choice, of_results
from .seen import LITTLE, Seen, one_of, some

__all__ = ["Seen", "see"]

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
        of_wrong = [_sentence(facts, seen, calls, results, good) for seen, calls in found]
    if raised:
        sentence = _sentence(facts, *of_good_input(facts, slow or raised), slow or raised, good)
        of_raised = [replace(sentence, rank=LITTLE - 1)]
    if bad:
        sentence = _sentence(facts, *of_bad_input(facts, bad), bad, [c for c in facts.calls if c.refusal])
        of_accepted = [replace(sentence, rank=LITTLE - 1)]
    first = [*of_raised, *of_wrong] if len(raised) > len(results) else [*of_wrong, *of_raised]
    return [*first, *of_accepted, *_of_both(facts, results, raised, good, first)]


def _of_both(
    facts: Facts, results: Sequence[Call], raised: Sequence[Call], good: Sequence[Call], said: Sequence[Seen]
) -> list[Seen]:
    """Which good inputs are wrong in one way or the other, if no sentence says which of them show what it is about."""
    if not results or not raised or any("inputs tried" in seen.text for seen in said):
        return []
    place = where(facts, [*results, *raised], good)
    if not place:
        return []
    text = f"Of the good inputs tried, {_those(place)} are wrong in one way or the other."
    return [Seen("which inputs", text, rank=LITTLE)]


def _sentence(facts: Facts, seen: Seen, calls: Sequence[Call], wrong: Sequence[Call], among: Sequence[Call]) -> Seen:
    """The whole sentence: what is seen, on how many cases, and which ones these are.

    ``calls`` show it, of the ``wrong`` ones, ``among`` all calls of their kind.
    """
    seen = replace(seen, covers=frozenset(call.number for call in calls))
    place, for_these = where(facts, wrong, among), ""
    if not place and wrong[0].comparable and (alike := _with_such_answers(wrong, among)):
        answers = one_of(list(dict.fromkeys(call.expected.result for call in alike)))
        if place := where(facts, wrong, alike):
            for_these = f" for which {answers} is right"
        elif all(isinstance(call.expected.result, bool) for call in among):
            place = where(facts, wrong, among, pairs=True)
    every = sum(call.problem is not None for call in among)
    whole = every == len(wrong)  # otherwise others of these calls are wrong in another way
    kind = "cases" if len(among) == len(facts.calls) else "bad inputs" if wrong[0].refusal else "good inputs"
    tried = f"of the {kind.replace('cases', 'inputs')} tried"
    told = wrong[0].refusal and ("inputs" in seen.text or "nothing is refused" in seen.text)  # on how many
    told = told or "tried" in seen.text
    if len(calls) < len(wrong):
        text = seen.text if told else f"{seen.text}, on at least {len(calls)} of the {every} wrong {kind}"
        part = where(facts, calls, among) if len(calls) > 1 and not told else ""
        if part:
            return _ended(seen, f"{text}: {tried}, on {_all_those(part)}")
        if not whole:
            return _ended(seen, text)
    elif told:
        text = seen.text
    else:
        text = f"{seen.text}, {some(len(wrong), len(among), kind)}"
    if place and place not in text:
        lonely = whole and len(wrong) == 1 and place.startswith("where ")  # which may well be chance
        said = f"{_those(place)} {'are wrong' if whole else 'show this'}"
        text += f"; {tried}{for_these}, {f'the wrong one is the only one {place}' if lonely else said}"
    elif not place and whole:
        text += nearly(facts, wrong, among, tried) or _in_a_list(facts, seen, wrong, among, tried)
    return _ended(seen, text)


def _in_a_list(facts: Facts, seen: Seen, wrong: Sequence[Call], among: Sequence[Call], tried: str) -> str:
    """Of answers True and False: a property of the wrong inputs among those with their right answer, or a list.

    Of numbers without a pattern, a list of few wrong inputs.
    """
    if not all(isinstance(call.expected.result, bool) for call in among):
        numbers = all(isinstance(call.expected.result, int | float | np.number) for call in among)
        few = len(wrong) <= LISTED and len(wrong) < len(among)
        return listed(facts.names, wrong) if numbers and few and seen.rank >= UNKNOWN else ""
    if alike := _with_such_answers(wrong, among):
        answers = one_of(list(dict.fromkeys(call.expected.result for call in alike)))
        if said := nearly(facts, wrong, alike, f"{tried} for which {answers} is right"):
            return said
    return listed(facts.names, wrong)


def _with_such_answers(wrong: Sequence[Call], among: Sequence[Call]) -> list[Call]:
    """The calls whose right answer is one that is missed; none, if answers are not few, or all of them are missed."""
    if not is_choice(among) or not all(isinstance(call.expected.result, str | bool) for call in among):
        return []
    missed = {call.expected.result for call in wrong}
    alike = [call for call in among if call.expected.result in missed]
    return alike if len(alike) < len(among) else []


def _those(place: str) -> str:
    """``exactly those where …``, or ``all but those where …``: what is true of the inputs tried, and may be chance."""
    return (
        place.replace("everywhere but where", "all but those where")
        if "everywhere" in place
        else f"exactly those {place}"
    )


def _all_those(place: str) -> str:
    """``all those where …``: it is so on these, and perhaps on others too."""
    return place.replace("everywhere but", "all but those") if "everywhere" in place else f"all those {place}"


def _ended(seen: Seen, text: str) -> Seen:
    """The text as a sentence, and the one that follows it."""
    return replace(seen, text=f"{text[0].upper()}{text[1:]}.{' ' * bool(seen.after)}{seen.after}")
