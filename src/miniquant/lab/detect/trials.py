"""What a wrong function does when it is called again: with the same arguments, with wider types, with others."""

from __future__ import annotations

import copy
import types
from collections.abc import Sequence

import numpy as np

from ..attempt import attempt
from ..compare import equal
from ..verdict import Call, Facts
from .numbers import array_of
from .seen import Seen

LAZY = (types.GeneratorType, map, zip, filter, reversed, enumerate)
WIDER = {
    "int8": np.int64,
    "uint8": np.int64,
    "int16": np.int64,
    "uint16": np.int64,
    "float16": np.float64,
    "int32": np.int64,
    "uint32": np.int64,
}
TRIES = 80  # calls with another argument
WIDENED = 24  # calls with a wider type, of inputs beyond the cases
FILLED = (0x5A, 0xA5)  # bytes that freed blocks of memory are filled with
BLOCK = 256  # bytes; smaller blocks are tried, and of each size as many as numpy keeps
BLOCKS = 7
LISTED = 8  # places
NOT_TWICE = "not the same twice"
MOST_OF = 0.8  # such a share of the changed cases must give the same result
STEPS = (1, 2, 3, 5)  # how many cases further on another argument is taken from


def again(facts: Facts, calls: Sequence[Call]) -> Seen | None:
    """A second call with the same arguments gives something else: as with a global list, or with np.empty."""
    call = calls[0]
    if places := _never_set(facts, call):
        listed = f"{', '.join(map(str, places[:LISTED]))}{', …' * (len(places) > LISTED)}"
        text = f"these bytes of the result, as tried in one case, are never set: {listed}"
        text += "; they are what the memory had before"
        return Seen("never set", text, "Leave no gap, or begin with zeros.", plain=True)
    second = attempt(facts.spec, facts.function, call.case, 2.0)
    if second.error or equal(second.result, call.outcome.result) or isinstance(call.outcome.result, LAZY):
        return None
    if not equal(copy.deepcopy(second.result), second.result):
        return None  # it does not even equal a copy of itself
    if type(second.result) is not type(call.expected.result) or "object at 0x" in repr(second.result):
        return None  # addresses, say, which are others in every call
    text = "two calls with the same arguments, as tried in one case, give different results"
    text += ": something is kept, drawn at random, or never set"
    return Seen(NOT_TWICE, text, "Begin with fresh values inside the function.", plain=True)


def _never_set(facts: Facts, call: Call) -> list[int]:
    """The places of bytes that are what a freed block of memory held: numpy gives such a block again, as it is."""
    if not isinstance(call.outcome.result, bytes):
        return []
    found = []
    for byte in FILLED:
        blocks = [np.full(size, byte, np.uint8) for size in range(1, BLOCK) for _ in range(BLOCKS)]
        del blocks
        found.append(attempt(facts.spec, facts.function, call.case, 2.0).result)
    one, two = found
    if not (isinstance(one, bytes) and isinstance(two, bytes) and len(one) == len(two)):
        return []
    places = [i for i, pair in enumerate(zip(one, two)) if pair == FILLED]
    return places if all(a == b for i, (a, b) in enumerate(zip(one, two)) if i not in places) else []


def overflow(facts: Facts, calls: Sequence[Call]) -> Seen | None:
    """Right once the arguments have a wider type: so the arithmetic was too narrow."""
    narrow: set[tuple[str, str]] = set()
    beyond = [call for call in facts.further if call.comparable and call.problem]
    for call in [*calls, *beyond[:WIDENED]]:
        case = list(call.case)
        found = False
        for index, value in enumerate(case):
            if isinstance(value, np.ndarray) and value.dtype.name in WIDER and value.size:
                narrow.add((facts.names[index], value.dtype.name))
                case[index] = value.astype(WIDER[value.dtype.name])
                found = True
        if not found:
            return None
        outcome = attempt(facts.spec, facts.function, tuple(case), 2.0)
        e, g = array_of(call.expected.result), array_of(outcome.result) if not outcome.error else None
        if (
            e is None
            or g is None
            or e.shape != g.shape
            or not np.allclose(e.astype(float), g.astype(float), rtol=1e-6, atol=0)
        ):
            return None
        mine = array_of(call.outcome.result)
        if mine is None or mine.shape != e.shape:
            return None  # no number that is too large for its type changes a shape
        if np.allclose(mine.astype(float), e.astype(float), rtol=1e-6, atol=0):
            return None  # the values were right before: it is their dtype
    if len(narrow) != 1:
        return None
    ((name, dtype),) = narrow
    if dtype.startswith("float"):
        text = f"with a wider type of `{name}` than {dtype} the result is right: perhaps a step is computed in {dtype}"
        return Seen(f"too narrow: {dtype}", text, f"Convert `{name}` first, with `.astype(...)`.", plain=True)
    if any(isinstance(x, np.ndarray) and x.dtype.kind == "f" for call in calls for x in call.case):
        text = f"with a wider type of `{name}` the result is right: perhaps a step is computed in too few bits"
        return Seen("too few bits", text, f"Convert `{name}` first, with `.astype(...)`.", plain=True)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    text = f"with a wider type of `{name}` than {dtype} ({low} to {high}) the result is right: perhaps a step overflows"
    return Seen(f"overflow in {dtype}", text, f"Convert `{name}` first, with `.astype(...)`.", plain=True)


def ignored(facts: Facts) -> Seen | None:
    """An argument that never changes the result, and must: seen by calling with the argument of another case."""
    if not facts.spec.keeps_to_memory or len(facts.names) < 2 or len(facts.calls) < 3:
        return None
    good = [call for call in facts.calls if call.comparable]
    for index, name in enumerate(facts.names[: min((len(call.case) for call in good), default=0)]):
        tried = 0
        pairs = [(one, two) for step in STEPS for one, two in zip(good, [*good[step:], *good[:step]])]
        for one, two in pairs:
            if tried == TRIES or equal(one.case[index], two.case[index]):
                continue
            case = (*one.case[:index], two.case[index], *one.case[index + 1 :])
            right = attempt(facts.spec, facts.spec.oracle, case, 1.0)
            if right.error:
                continue
            mine = attempt(facts.spec, facts.function, case, 1.0)
            if mine.error or not equal(mine.result, one.outcome.result):
                break  # where the right result stays the same, too: then it has an effect
            tried += not equal(right.result, one.expected.result)
        else:
            same, of = _of_changes(facts, index)
            if tried >= 3 and same >= MOST_OF * of:
                count = f"all {tried + of}" if same == of else f"{tried + same} of the {tried + of}"
                text = f"with another `{name}` the result stays the same"
                text += f", in {count} calls tried in which the right one changes"
                return Seen(f"the same result with another `{name}`", text, f"Use `{name}`.", 30)
    return None


def _of_changes(facts: Facts, index: int) -> tuple[int, int]:
    """Of the cases with this argument changed alone, and another right result: how many give the same as before."""
    same = of = 0
    for call in facts.changed:
        before = facts.origin(call)
        others = [i for i, (old, new) in enumerate(zip(before.case, call.case)) if not equal(old, new)]
        both = others == [index] and call.comparable and before.comparable
        if both and not equal(before.expected.result, call.expected.result):
            of += 1
            same += equal(before.outcome.result, call.outcome.result)
    return same, of
