"""What a student's function keeps from call to call, or reads, if it is right once that is empty before each call."""

from __future__ import annotations

import functools
import inspect
import types
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..attempt import attempt
from ..limit import TooSlow, spent
from ..more_cases import more_cases
from ..verdict import USED_AGAIN, Facts, problem
from .seen import Seen

KINDS = (dict, list, set, deque, bytearray)  # what can be emptied, and filled again
MOST = 4  # things that are tried
SECONDS = 0.5  # for one call
LIMIT = 2.0  # seconds of the processor for one of them
FURTHER = 12  # inputs beyond the cases


def of_kept(facts: Facts) -> Seen | None:
    """A list, dict or set outside the function, or a cache: with an empty one for each call all cases are right."""
    function = inspect.unwrap(facts.function)
    if not isinstance(function, types.FunctionType):
        return None
    if all(call.problem.what == USED_AGAIN for call in facts.calls if call.problem):
        return None  # what was in it does not matter: each result is right
    n = len(facts.calls)
    for words, thing in list(_things(function))[:MOST]:
        right, filled = _without(facts, thing)
        if right and filled:
            text = f"What is in {words} stays there from call to call. "
            text += f"With an empty one for each call, your function is right on all {n} cases."
            return Seen("kept from call to call", text, "Make it inside the function.", plain=True)
        if right:
            text = f"With nothing in {words}, your function is right on all {n} cases."
            return Seen(f"right with nothing in {words}", text, "Look at what it is for.", plain=True)
    return None


def _things(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What the function and the functions and classes that it names can leave something in, with words for it."""
    here, seen, todo = function.__globals__, set[int](), list[Any]([function])
    if str(here.get("__name__")).split(".")[0] == "miniquant":
        return
    while todo:
        part = todo.pop(0)
        if id(part) in seen or getattr(part, "__module__", None) != function.__module__:
            continue
        seen.add(id(part))
        if hasattr(part, "cache_clear"):
            yield f"the cache of `{part.__name__}`", part
        part = inspect.unwrap(part) if callable(part) else part
        if isinstance(part, type):
            yield from ((f"`{part.__name__}.{name}`", x) for name, x in vars(part).items() if _holds(x))
            todo += [x for x in vars(part).values() if isinstance(x, types.FunctionType)]
        elif isinstance(part, types.FunctionType):
            yield from _defaults(part)
            yield from ((f"`{part.__name__}.{name}`", x) for name, x in vars(part).items() if _holds(x))
            named = [here[name] for name in _names(part.__code__) if name in here]
            yield from ((f"`{name}`", here[name]) for name in _names(part.__code__) if _holds(here.get(name)))
            todo += [x for x in named if isinstance(x, type) or callable(x)]


def _defaults(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for parameter in inspect.signature(function).parameters.values():
        if _holds(parameter.default):
            yield f"the default of `{parameter.name}`", parameter.default


def _names(code: types.CodeType) -> list[str]:
    """The names outside it that code uses, and those that functions in it use."""
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _names(part)]
    return list(dict.fromkeys([*code.co_names, *inner]))


def _holds(value: Any) -> bool:
    """Whether something was put into a value that can be emptied."""
    return isinstance(value, KINDS) and len(value) > 0


def _without(facts: Facts, thing: Any) -> tuple[bool, bool]:
    """Whether all cases, and others, are right if the thing is empty before each call, and whether calls fill it."""
    late, filled = spent(LIMIT), False

    @functools.wraps(facts.function)
    def forgetful(*arguments: Any) -> Any:
        """The function with nothing kept; a check may call it more than once in a case."""
        thing.cache_clear() if hasattr(thing, "cache_clear") else thing.clear()
        return facts.function(*arguments)

    beyond = more_cases(facts.spec)[:FURTHER]
    with _restored(thing):
        for case, right in [*((call.case, call.expected) for call in facts.calls), *beyond]:
            outcome = attempt(facts.spec, forgetful, case, SECONDS)
            filled = filled or hasattr(thing, "cache_clear") or len(thing) > 0
            if isinstance(outcome.error, TooSlow) or late() or problem(facts.spec, case, outcome, right):
                return False, filled
    return True, filled  # a table is not filled


@contextmanager
def _restored(thing: Any) -> Iterator[None]:
    """Afterwards the thing holds again what it held; a cache is left empty, which costs time alone."""
    if not isinstance(thing, KINDS):
        yield
        return
    held: Any = list(thing.items()) if isinstance(thing, dict) else list(thing)
    try:
        yield
    finally:
        thing.clear()
        if isinstance(thing, dict | set):
            thing.update(held)
        else:
            thing.extend(held)
