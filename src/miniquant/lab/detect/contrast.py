"""One small change of a wrong input with which the result is right: it shows what in the input matters."""

from __future__ import annotations

import inspect
import itertools
import math
import types
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..attempt import Outcome, attempt
from ..compare import equal, short
from ..fresh_cases import Pool
from ..limit import spent
from ..more_cases import SECONDS
from ..pair_cases import Pair, changes_of, pair_of, pools_of
from ..spec import Case
from ..verdict import Call, Facts, problem, shown_first, size_of
from .seen import Seen

TRIES = 160  # changes of the input
LIMIT = 2.0  # seconds of the processor for all of them
SMALL = 64  # values of an array in which each one is changed
LONGEST = 60  # characters of a value that is shown
OTHERS = 12  # values of another case, of each argument
TWICE = 2  # times that the change is made


def contrast(facts: Facts, wrong: Sequence[Call]) -> str:
    """``In the smallest of these cases, the result is right with `limit` = 1.0 in place of inf.``, or nothing."""
    if not facts.spec.keeps_to_memory or remembers(facts.function):
        return ""
    call = shown_first(wrong)
    late = spent(LIMIT)
    found = []
    others = list(_of_other_cases(facts, call.case))
    pools = pools_of(facts.spec)
    more = itertools.chain(one_by_one(call.case, pools), others)
    for pair in itertools.islice(changes_of(facts.spec, call.number, more), TRIES):
        if late():
            break
        words, rank = _change(facts.names, call.case, pair.case)
        if not all(_is_usual(pool, part) for pool, part in zip(pools, pair.case)):
            continue
        rank += 2 * any(equal(pair.case, other) for other in others) + 4 * bool(_other_answer(call, pair))
        if not words or pair.right.error or _is_small(pair.right.result, facts.spec.tolerance):
            continue
        if not _is_bare(pair.right.result, call.expected.result):
            found.append((rank, len(words), words, pair))
    for *_, words, pair in sorted(found, key=lambda one: one[:3]):
        if late():
            return ""
        pairs = [(pair.case, pair.right, True), (call.case, call.expected, False)] * TWICE
        if all(_is_right(facts, case, right) == wanted for case, right, wanted in pairs):
            which = "the smallest of these cases" if len(wrong) > 1 else "this case"
            if any(size_of(other.case) < size_of(call.case) for other in wrong):
                which = "the case shown"  # not the smallest, whose argument is empty
            return f"In {which}, the result is right {_border(facts, call, pair) or words + _other_answer(call, pair)}."
    return ""


def _other_answer(call: Call, pair: Pair) -> str:
    """``, where 'zip' is right``: of a text, or of True or False, if the change makes another one right."""
    before, after = call.expected.result, pair.right.result
    if not isinstance(after, str | bool) or equal(before, after) or len(short(after)) > LONGEST:
        return ""
    return f", where {short(after)} is right"


def without_contrast(seen: Seen) -> Seen:
    """A sentence that is not the first: the case that is shown is different, and its contrast is not said."""
    return replace(seen, text=seen.text.removesuffix(f" {seen.after}"), after="")


def remembers(function: Any) -> bool:
    """Whether a function, or another one of its file, has a default argument that was filled, or a cache."""
    function = inspect.unwrap(function)
    if not isinstance(function, types.FunctionType):
        return False
    file = function.__code__.co_filename
    others = [part for part in function.__globals__.values() if isinstance(part, types.FunctionType)]
    own = [function, *(part for part in others if part.__code__.co_filename == file)]
    defaults = [x for part in own for x in (*(part.__defaults__ or ()), *(part.__kwdefaults__ or {}).values())]
    cached = [part for part in function.__globals__.values() if hasattr(part, "cache_info")]
    ours = [part for part in cached if getattr(part, "__module__", None) == function.__module__]
    return bool(ours) or any(isinstance(x, dict | list | set) and x for x in defaults)


def _border(facts: Facts, call: Call, pair: Pair) -> str:
    """``with `n` = 254 and wrong with 255``: of an integer the two neighbours between which right and wrong part."""
    i = next(i for i, (old, new) in enumerate(zip(call.case, pair.case)) if not _same(old, new))
    wrong, right = call.case[i], pair.case[i]
    if type(wrong) is not int:
        return ""
    while abs(wrong - right) > 1:
        middle = (wrong + right) // 2
        between = pair_of(facts.spec, call.number, (*call.case[:i], middle, *call.case[i + 1 :]))
        if between is None or between.right.error:
            return ""
        right, wrong = (middle, wrong) if _is_right(facts, between.case, between.right) else (right, middle)
    return f"with `{facts.names[i]}` = {right} and wrong with {wrong}"


def _is_right(facts: Facts, case: Case, right: Outcome) -> bool:
    return problem(facts.spec, case, attempt(facts.spec, facts.function, case, SECONDS), right) is None


def _is_small(result: Any, tolerance: float) -> bool:
    """Whether a number is so small that a wrong one may pass for it."""
    return isinstance(result, float) and 0 < abs(result) < 1000 * tolerance


def _is_bare(result: Any, before: Any) -> bool:
    """Whether a result is nothing but zeros, or empty, and the one before was not: nearly every function is right."""
    return _is_empty(result) and not _is_empty(before)


def _is_empty(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_empty, value))
    if isinstance(value, bytes):
        return not any(value)
    if isinstance(value, np.ndarray):
        return not value.any()
    return isinstance(value, int | float | str | list | dict | type(None)) and not value


def _of_other_cases(facts: Facts, case: Case) -> Iterator[Case]:
    """The case with one argument of another case, if it is short."""
    for i, part in enumerate(case):
        seen: set[str] = set()
        for other in facts.calls:
            if i < len(other.case) and type(other.case[i]) is type(part) and not isinstance(part, np.ndarray):
                text = short(other.case[i])
                if len(text) <= LONGEST and text not in seen and len(seen) < OTHERS:
                    seen.add(text)
                    yield (*case[:i], other.case[i], *case[i + 1 :])


def _is_usual(pool: Pool, part: Any) -> bool:
    """Whether a float lies within those of the cases; others may make no sense."""
    known = [value for value in pool.values if isinstance(value, float)]
    return not isinstance(part, float) or not known or min(known) <= part <= max(known)


def one_by_one(case: Case, pools: Sequence[Pool]) -> Iterator[Case]:
    """The case with one value of a small array changed, to such values as the cases have."""
    for i, (part, pool) in enumerate(zip(case, pools)):
        if isinstance(part, np.ndarray) and part.dtype.kind in "iuf" and part.ndim and 0 < part.size <= SMALL:
            for place, value in enumerate(part.reshape(-1)):
                for new in _others(value):
                    changed = part.copy(order="K")
                    changed[np.unravel_index(place, part.shape)] = new
                    if part.dtype.kind != "f" or pool.has(changed):
                        yield (*case[:i], changed, *case[i + 1 :])


def _others(value: Any) -> Iterator[Any]:
    if isinstance(value, np.integer):
        info = np.iinfo(value.dtype)
        yield from (new for new in (int(value) - 1, int(value) + 1) if info.min <= new <= info.max)
    elif value:
        yield from (value / 2, 2 * value, -value, 65536 * value)
    if value:
        yield 0


def _change(names: Sequence[str], before: Case, after: Case) -> tuple[str, float]:
    """How one input becomes another, after "the result is right", and how far the two are apart; nothing if long."""
    differ = [i for i, (old, new) in enumerate(zip(before, after)) if not _same(old, new)]
    if len(differ) != 1:
        return "", 0
    (i,) = differ
    if _is_renamed(before[i], after[i], [*before[:i], *before[i + 1 :]]):
        return "", 0
    return _in_words(names[i], before[i], after[i])


def _is_renamed(old: Any, new: Any, others: Sequence[Any]) -> bool:
    """Whether a key has another name by which another argument does not know it: that is more than one change."""
    if not (isinstance(old, dict) and isinstance(new, dict)) or len(old) != len(new):
        return False
    known = [part for part in others if isinstance(part, dict | list | tuple | set)]
    return any(key in part for key in old.keys() ^ new.keys() for part in known)


def _same(old: Any, new: Any) -> bool:
    return type(old) is type(new) and equal(old, new)


def _in_words(path: str, old: Any, new: Any) -> tuple[str, float]:
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        return _of_arrays(path, old, new)
    if type(old) is not type(new):
        return "", 0
    found = ("", 0.0)
    if isinstance(old, list | tuple):
        found = _of_items(path, old, new)
    elif isinstance(old, dict):
        found = _of_keys(path, old, new)
    elif isinstance(old, bytes) and len(old) == len(new) > 8:
        differ = [i for i in range(len(old)) if old[i] != new[i]]
        if len(differ) == 1:
            (i,) = differ
            return f"with {new[i]:02x} in place of {old[i]:02x} at byte {i} of `{path}`", 1
    return found if found[0] else _of_values(path, old, new)


def _of_items(path: str, old: Any, new: Any) -> tuple[str, float]:
    if len(old) == len(new):
        return _of_one(path, dict(enumerate(old)), dict(enumerate(new)))
    gone = [i for i in range(len(old)) if len(new) == len(old) - 1 and equal([*old[:i], *old[i + 1 :]], [*new])]
    return (f"without `{path}[{gone[0]}]`", 1) if gone else ("", 0)


def _of_keys(path: str, old: dict[Any, Any], new: dict[Any, Any]) -> tuple[str, float]:
    if old.keys() == new.keys():
        if list(old) != list(new) and all(_same(old[key], new[key]) for key in old):
            return f"with the keys of `{path}` in another order", 1
        return _of_one(path, old, new)
    gone = old.keys() - new.keys()
    if len(gone) == 1 and len(new) == len(old) - 1 and all(_same(old[key], new[key]) for key in new):
        return f"without `{path}[{gone.pop()!r}]`", 1
    return "", 0


def _of_one(path: str, old: dict[Any, Any], new: dict[Any, Any]) -> tuple[str, float]:
    """The one item of a list, tuple or dict that differs."""
    differ = [key for key in old if not _same(old[key], new[key])]
    return _in_words(f"{path}[{differ[0]!r}]", old[differ[0]], new[differ[0]]) if len(differ) == 1 else ("", 0)


def _of_arrays(path: str, old: np.ndarray, new: np.ndarray) -> tuple[str, float]:
    if (old.shape, old.dtype, old.strides) != (new.shape, new.dtype, new.strides) or not old.ndim:
        return "", 0  # numbers in another order in memory are a change as well
    with np.errstate(all="ignore"):
        places = np.argwhere((old != new) & ~((old != old) & (new != new)))
    if len(places) != 1:
        return "", 0
    at = tuple(int(i) for i in places[0])
    return _of_values(f"{path}[{', '.join(map(str, at))}]", old[at], new[at])


def _of_values(path: str, old: Any, new: Any) -> tuple[str, float]:
    texts = [repr(value) if isinstance(value, bytes | str) else short(value) for value in (new, old)]
    if max(map(len, texts)) > LONGEST or texts[0] == texts[1] or any("tensor(" in text for text in texts):
        return "", 0
    if type(old) is int and new < 0 <= old:
        return "", 0  # a size or a number of things
    return f"with `{path}` = {texts[0]} in place of {texts[1]}", 1 + _apart(old, new)


def _apart(old: Any, new: Any) -> float:
    """How far two values are apart, from 0 to 1; nothing is far, since many functions are right there."""
    if not isinstance(new, bool) and not new:
        return 0.7
    if isinstance(old, int | float | np.number) and old and math.isfinite(old) and math.isfinite(new):
        size = abs(float(new) / float(old))
        return min(0.9, abs(math.log2(size)) / 20 + 0.5 * bool(old > 0 > new)) if size else 0.9
    return 0
