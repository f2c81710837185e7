"""What the wrong results of a function have in common, compared with the right ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..attempt import Outcome
from ..compare import equal, short
from ..guard import guarded
from ..verdict import Call, Facts
from .bytemap import of_map
from .chance import ELSEWHERE, FEWEST, constant_where_wrong, is_fact, is_weak, most_telling, wrong_beyond
from .differences import of_differences
from .distance import how_far_off
from .habits import of_habits
from .keys import key_by_key
from .mapping import of_mapping
from .pairs import of_pair
from .profile import profile
from .seen import VAGUE, Seen, most_common
from .trials import LAZY, again, ignored, overflow

CHANGED, SHARED = "argument changed", "shared memory"  # titles
SURE = 12  # below this rank, one pair is enough
MANY = 500
_KEPT: dict[int, tuple[Outcome, set[Seen]]] = {}  # an outcome belongs to one case; it is held, so its id stays its own


def of_results(facts: Facts, calls: Sequence[Call]) -> list[tuple[Seen, list[Call]]]:
    """What the results of these calls show, and which of them: at most two sentences.

    A second one, on the results that do not show the first, says only what is there.
    """
    calls, side = [c for c in calls if not is_side(facts, c)], [c for c in calls if is_side(facts, c)]
    if not calls:
        return _of_side(facts, side)
    return [*_of_wrong(facts, calls), *_of_side(facts, side)]


def _of_side(facts: Facts, calls: Sequence[Call]) -> list[tuple[Seen, list[Call]]]:
    """What else is wrong with calls whose results are right; the commonest first."""
    found: dict[Seen, list[Call]] = {}
    for call in calls:
        found.setdefault(_side_effect(facts, call), []).append(call)
    return sorted(found.items(), key=lambda pair: -len(pair[1]))[:2]


def _of_wrong(facts: Facts, calls: Sequence[Call]) -> list[tuple[Seen, list[Call]]]:
    """The same for calls whose results are wrong."""
    beyond = [call for call in facts.further if call.comparable and call.problem and not is_side(facts, call)]
    both = [*calls, *beyond[:ELSEWHERE]]
    for whole in (_no_answer, _unchanged, _constant, overflow, again, _confused):
        if plain := _safely(partial(_one, whole, facts, calls)):
            return [(plain[0], list(calls))]
    everywhere = {
        *_safely(lambda: of_mapping(facts, calls)),
        *_safely(lambda: of_map(facts)),
        *_safely(lambda: of_differences(facts, both)),
        *_safely(lambda: [ignored(facts)]),
        *_safely(lambda: [key_by_key(facts, [*calls, *wrong_beyond(facts)], of_pair)]),
        *_safely(lambda: [of_habits(facts, calls)]),
        *_safely(lambda: [_same_where_wrong(both)]),
    }
    sets = [_of_call(facts, call) | everywhere for call in calls]
    seen, places = most_telling(facts, calls, sets, everywhere, partial(look_at, facts))
    if not seen:
        return [(how_far_off(facts, calls), list(calls))]
    if seen.rank >= VAGUE and len(places) == len(calls) and not is_fact(seen):
        seen = replace(seen, text=seen.text + profile(calls, facts.spec.tolerance))
    found = [(seen, [calls[place] for place in places])]
    rest = [place for place in range(len(calls)) if place not in places]
    if rest:
        second, _ = most_common([{one for one in sets[place] if is_fact(one) and not is_weak(one)} for place in rest])
        if second and (len(rest) > 1 or second.rank < SURE):
            found.append((second, [calls[place] for place in rest]))
    return found


def is_side(facts: Facts, call: Call) -> bool:
    """Whether the result of a call is right, and something else is wrong with the call."""
    outcome = call.outcome
    beside = outcome.change or outcome.view or outcome.kept
    spec = facts.spec
    return bool(beside) and equal(call.expected.result, outcome.result, spec.tolerance, ordered=spec.ordered)


def _same_where_wrong(calls: Sequence[Call]) -> Seen | None:
    """One and the same number in all wrong results."""
    if not constant_where_wrong(calls):
        return None
    value = short(calls[0].outcome.result)
    if len({repr(call.expected.result) for call in calls}) < FEWEST:
        return None
    text = f"each wrong result is {value}"
    return Seen(text, text, "", 13)


def is_choice(calls: Sequence[Call]) -> bool:
    """Whether the right results are few short texts, as True and False are, each of them for several inputs."""
    texts = all(isinstance(call.expected.result, str) and len(call.expected.result) <= 20 for call in calls)
    most, found = max(4, len(calls) // 2 if texts else 0), set[str]()
    for call in calls:  # one after another: a large array is long to write out
        found.add(repr(call.expected.result))
        if len(found) > most:
            return False
    return True


def _confused(facts: Facts, calls: Sequence[Call]) -> Seen | None:
    """One of few possible answers in place of another."""
    pairs = [(_python(call.outcome.result), _python(call.expected.result)) for call in calls]
    if not all(isinstance(x, str | bool) or x is None for pair in pairs for x in pair):
        return None
    every = [call for call in facts.calls if call.comparable]
    if not is_choice(every) or not any(len(str(x)) <= 20 for x in pairs[0]):
        return None
    if all(str(g).casefold() == str(e).casefold() for g, e in pairs):
        return None  # capitals, or a text in place of a boolean: something else says so
    tried = (*every, *facts.further, *facts.fresh, *facts.changed)
    both = [(repr(_python(call.outcome.result)), repr(_python(call.expected.result))) for call in tried]
    missing = {repr(e) for _, e in pairs} - {e for g, e in both if g == e}
    never = (
        f"; where {' or '.join(sorted(missing))} is right, it is never the answer, as far as tried" if missing else ""
    )
    if len(calls) == len(every) and all(isinstance(x, bool) for pair in pairs for x in pair):
        return Seen("the opposite", "every answer is the opposite of the right one", "Exchange True and False.", 10)
    unique = list(dict.fromkeys((repr(g), repr(e)) for g, e in pairs))
    if len({g for g, _ in unique}) == 1 < len(unique) <= 6:
        listed = " or ".join(e for _, e in unique)
        return Seen(f"{unique[0][0]} too often", f"the answer is {unique[0][0]} where {listed} is right{never}", "", 20)
    if len(unique) > 8:
        return None
    rights: dict[str, list[str]] = {}
    for g, e in unique:
        rights.setdefault(g, []).append(e)
    words = ", and ".join(f"the answer is {g} where {' or '.join(found)} is right" for g, found in rights.items())
    title = " · ".join(f"{g} in place of {' or '.join(found)}" for g, found in rights.items())
    return Seen(title, words + never, "", 20) if len(rights) <= 4 else None


def _of_call(facts: Facts, call: Call) -> set[Seen]:
    """Everything that one call shows.

    It is kept for a while: the checks of a lesson look at each mistake alone, and beside its neighbours.
    """
    known = _KEPT.get(id(call.outcome))
    if known is None:
        if len(_KEPT) >= MANY:
            _KEPT.clear()
        known = _KEPT[id(call.outcome)] = call.outcome, look_at(facts, call)
    return known[1]


def look_at(facts: Facts, call: Call) -> set[Seen]:
    """The same, looked for anew."""
    expected, got = call.expected.result, call.outcome.result
    return set(_safely(lambda: of_pair(facts, call, expected, got)))


def _one(detector: Callable[..., Seen | None], *arguments: Any) -> list[Seen | None]:
    return [detector(*arguments)]


def _safely(detector: Callable[[], Iterable[Seen | None]]) -> list[Seen]:
    """What a detector says until it fails: a result may be anything at all, and a check must not fail with it."""
    found: list[Seen] = []
    with guarded():
        found.extend(seen for seen in detector() if seen)
    return found


def _side_effect(facts: Facts, call: Call) -> Seen:
    if change := call.outcome.change:
        name = facts.names[change.index] + change.place
        return Seen(
            CHANGED,
            f"the result is right, and the function changes its argument `{name}`",
            f"Work on a copy of `{name}`.",
            5,
            plain=True,
        )
    if call.outcome.kept:
        return Seen(
            "memory used again",
            "the result is right, and it is in the memory of an earlier call's result",
            "Make a new array, list or dict in each call.",
            5,
            plain=True,
        )
    return Seen(
        SHARED,
        "the result is right, and it is an argument or shares memory with one",
        "Return a copy: `.copy()`.",
        5,
        plain=True,
    )


def _no_answer(facts: Facts, calls: Sequence[Call]) -> Seen | None:
    """Nothing that could be compared: None, an error object, a generator, a function."""
    results = [call.outcome.result for call in calls]
    if all(result is None for result in results):
        if all(call.outcome.printed for call in calls):
            return Seen(
                "printed",
                "the function prints and returns None",
                "Return what it prints, if that is the answer.",
                plain=True,
            )
        return Seen(
            "None returned", "the function returns None", "Each way through the function needs a `return`.", plain=True
        )
    if all(isinstance(result, BaseException) for result in results):
        return Seen(
            "an error returned",
            "you return the error object; only `raise` raises it",
            "Write `raise` in place of `return`.",
            plain=True,
        )
    if all(isinstance(result, LAZY) for result in results):
        name = type(results[0]).__name__
        wanted = calls[0].expected.result
        cure = (
            "Use `all(...)` or `any(...)`."
            if isinstance(wanted, bool)
            else 'Use `list(...)`, `dict(...)` or `b"".join(...)`.'
        )
        return Seen(f"a {name} returned", f"the result is a {name}, which has computed nothing yet", cure, plain=True)
    if all(callable(result) and not callable(call.expected.result) for result, call in zip(results, calls)):
        what = "a class" if isinstance(results[0], type) else "a function or method"
        return Seen(
            "not called",
            f"the result is {what} itself, which was not called",
            "Add parentheses: `f(x)` in place of `f`.",
            plain=True,
        )
    return None


def _python(value: Any) -> Any:
    return bool(value) if isinstance(value, np.bool_) else value


def _unchanged(facts: Facts, calls: Sequence[Call]) -> Seen | None:
    for index, name in enumerate(facts.names[: len(calls[0].case)]):
        every = [(c.case[index], c.outcome.result) for c in _every(facts)]  # the right ones, too
        if all(type(a) is type(b) and equal(a, b) for a, b in every):
            text = f"the result is the argument `{name}`, unchanged, {facts.tried}"
            return Seen("argument returned", text, "Return what you computed.", plain=True)
    return None


def _every(facts: Facts) -> list[Call]:
    """All calls with two results, those by which nothing is found among them."""
    return [*facts.comparable, *(call for call in (*facts.fresh, *facts.changed) if call.comparable)]


def _constant(facts: Facts, calls: Sequence[Call]) -> Seen | None:
    """One result for every input, although different ones are expected."""
    every = _every(facts)
    if len(facts.comparable) < 3 or not all(equal(every[0].outcome.result, call.outcome.result) for call in every):
        return None
    if all(equal(every[0].expected.result, call.expected.result) for call in every):
        return None
    shown = short(every[0].outcome.result, 60)
    return Seen("always the same", f"the result is {shown} {facts.tried}", "Use the arguments.", plain=True)
