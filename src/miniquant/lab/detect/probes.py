"""Which parts of an argument a wrong function does not look at, and which it must not: seen by changing them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..attempt import attempt
from ..compare import equal
from ..verdict import Call, Facts
from .seen import Seen

CALLS = 24  # in which a part is changed; a part without effect has none where the result is right, either
WRONG = 16  # of them, with a wrong result
TRIES = 12  # changes of a part
ENOUGH = 4  # of them, in which the change must have counted
OTHERS = 6  # numbers that are put in the place of one
LONGEST = 64  # bytes or bits of an argument that are looked at
SECONDS = 0.5  # for one call
MOST = 1500  # calls in all
ORDERS = (("the values in reversed order", lambda x: x[::-1].copy()), ("every value twice", lambda x: np.tile(x, 2)))


def of_probes(facts: Facts) -> Seen | None:
    """Parts of an argument that change the right result and not the wrong one, or the other way round."""
    if not facts.spec.keeps_to_memory:
        return None
    calls = [call for call in facts.calls if call.comparable]
    wrong, right = ([call for call in calls if (call.problem is None) == is_right] for is_right in (False, True))
    calls = [*wrong[: max(CALLS - len(right), WRONG)], *right][:CALLS]
    if len(calls) < ENOUGH:
        return None
    left = [MOST]
    idle, extra = [], []
    for index, name in enumerate(facts.names[: min(len(call.case) for call in calls)]):
        kind = _kind([call.case[index] for call in calls])
        if not kind:
            continue
        no_effect, too_much = [], []
        known = 0
        pool = _pool(kind, [call.case[index] for call in calls])
        for place in _places(kind, [call.case[index] for call in calls]):
            counted, wrongly = _tried(facts, calls, index, kind, place, pool, left)
            known += counted is not None
            if counted:
                no_effect.append(place)
            if wrongly:
                too_much.append(place)
            if left[0] <= 0:
                return None
        if no_effect and len(no_effect) < known and not (kind == "bit" and _is_no_part(no_effect)):
            idle.append(f"{_words(kind, no_effect)} of `{name}`")
        rounded = kind == "bit" and any(type(call.expected.result) is not int for call in calls)
        if too_much and not rounded:
            extra.append(f"{_words(kind, too_much)} of `{name}`")
    if idle:
        text = (
            f"Where {' and '.join(idle)} {_was(idle)} changed and the right result changes, yours stayed the same,"
            " in all changes tried."
        )
        return Seen("the same result after a change", text, "Use the whole argument.", 30)
    if extra:
        text = (
            f"Where {' and '.join(extra)} {_was(extra)} changed, the right result stayed the same, and yours did not,"
            " in all changes tried."
        )
        return Seen("another result after a change", text, "Leave it out.", 30)
    return _of_order(facts, calls)


def _was(parts: Sequence[str]) -> str:
    return "were" if len(parts) > 1 or " and " in parts[0] or " to " in parts[0] or "bits" in parts[0] else "was"


def _of_order(facts: Facts, calls: Sequence[Call]) -> Seen | None:
    """Values in another order, or each of them twice: the right result stays the same, and the wrong one does not."""
    arrays = [i for i, part in enumerate(calls[0].case) if isinstance(part, np.ndarray) and part.ndim == 1]
    if not arrays or any(np.ndim(call.case[i]) != 1 for call in calls for i in arrays):
        return None
    if any(len({np.shape(call.case[i]) for i in arrays}) > 1 for call in calls):
        return None
    names = [f"`{facts.names[i]}`" for i in arrays]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    for words, change in ORDERS:
        tried = differ = 0
        for call in [call for call in calls if call.problem and len(call.case[arrays[0]]) > 1]:
            case = tuple(change(part) if i in arrays else part for i, part in enumerate(call.case))
            right = attempt(facts.spec, facts.spec.oracle, case, SECONDS)
            if right.error or not _alike(right.result, call.expected.result):
                return None
            mine = attempt(facts.spec, facts.function, case, SECONDS)
            if not mine.error:
                tried += 1
                differ += not (_alike(mine.result, call.outcome.result) or equal(mine.result, call.outcome.result))
        if tried >= ENOUGH and 2 * differ > tried:
            text = f"With {words} in {listed}, the right result stays the same, and yours changes"
            if differ < tried:  # a change in the last digits is not counted
                text = f"{text}, in at least {differ} of {tried} wrong cases tried."
            else:
                text = f"{text}, in {differ} of {tried} wrong cases tried."
            return Seen(words, text, "Use all of them at once.", 30)
    return None


def _alike(a: Any, b: Any) -> bool:
    """Whether two numbers, or two tuples of them, are the same but for their last digits."""
    try:
        return bool(np.allclose(np.asarray(a, float), np.asarray(b, float), rtol=1e-6, atol=1e-12))
    except (TypeError, ValueError):
        return False


def _tried(
    facts: Facts,
    calls: Sequence[Call],
    index: int,
    kind: str,
    place: int,
    pool: Sequence[float],
    left: list[int],
) -> tuple[bool | None, bool]:
    """Whether a part never counts although it must (``None``: not known); and whether it counts and must not."""
    must = must_not = wrongly = 0
    ways = [list(_changed(call.case[index], kind, place, pool)) for call in calls]
    for way in range(max(map(len, ways))):  # every call in one way before the next way
        for call, changes in zip(calls, ways):
            if way >= len(changes) or (way and max(must, must_not) >= TRIES):
                continue
            case = (*call.case[:index], changes[way], *call.case[index + 1 :])
            left[0] -= 2
            right = attempt(facts.spec, facts.spec.oracle, case, SECONDS)
            if right.error:
                continue
            mine = attempt(facts.spec, facts.function, case, SECONDS)
            same = not mine.error and equal(mine.result, call.outcome.result)
            counts = not equal(right.result, call.expected.result)
            if counts and not same:
                return False, False
            must += counts
            must_not += not counts
            wrongly += not counts and not same and not mine.error
    return (True if must >= ENOUGH else None), must == 0 and must_not >= ENOUGH and wrongly == must_not


def _kind(values: Sequence[Any]) -> str:
    if all(isinstance(value, bytes) for value in values):
        return "byte"
    if all(type(value) is int and value >= 0 for value in values):
        return "bit"
    if all(isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "f" for value in values):
        return "value"
    arrays = all(isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype == np.uint8 for value in values)
    if arrays and len({value.shape[1] for value in values}) == 1 and len(values[0]):
        return "column"
    return ""


def _places(kind: str, values: Sequence[Any]) -> range:
    """The places that are tried; of an array, 0 is the first value, 1 the last, 2 the one in the middle."""
    if kind == "byte":
        return range(min(max(map(len, values)), LONGEST))
    if kind == "column":
        return range(min(values[0].shape[1], LONGEST))
    return range(min(max(value.bit_length() for value in values), LONGEST)) if kind == "bit" else range(3)


def _pool(kind: str, values: Sequence[Any]) -> list[float]:
    """Numbers that the argument has in some call, 0 first: others may not be allowed."""
    found = sorted({x for value in values for x in value.tolist() if math.isfinite(x)}) if kind == "value" else []
    return [*[0.0] * (0.0 in found), *[x for x in found[:: max(1, len(found) // OTHERS)] if x]]


def _changed(value: Any, kind: str, place: int, pool: Sequence[float]) -> Iterator[Any]:
    """The value with this part changed, in different ways; nothing if it has no such part."""
    if kind == "byte" and place < len(value):
        for mask in (0x55, 0xAA, 0xFF):
            yield value[:place] + bytes([value[place] ^ mask]) + value[place + 1 :]
    elif kind == "column":
        for mask in (0x15, 0x0A, 0x3F):
            changed = value.copy()
            changed[:, place] ^= mask
            yield changed
    elif kind == "bit":
        yield value ^ (1 << place)
    elif kind == "value" and len(value) >= 2 + (place == 2):
        at = {0: 0, 1: len(value) - 1, 2: len(value) // 2}[place]
        for other in [x for x in pool if x != value[at]]:
            changed = value.copy()
            changed[at] = other
            yield changed


def _words(kind: str, places: Sequence[int]) -> str:
    if kind == "value":
        names = {0: "the first value", 1: "the last value", 2: "the value in the middle"}
        return " and ".join(names[place] for place in places)
    runs = list(_runs(places))
    parts = [f"{a}" if a == b else f"{a} and {b}" if b == a + 1 else f"{a} to {b}" for a, b in runs]
    word = kind if len(places) == 1 else f"{kind}s"
    return f"{word} {', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else f"{word} {parts[0]}"


def _is_no_part(bits: Sequence[int]) -> bool:
    """Whether this is one bit out of the middle, or bits here and there: no part that somebody left out."""
    return len(bits) == 1 or len(list(_runs(bits))) > 1


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = before = places[0]
    for place in places[1:]:
        if place != before + 1:
            yield start, before
            start = place
        before = place
    yield start, before
