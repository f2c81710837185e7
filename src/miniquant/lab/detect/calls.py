"""Which other exercises a student's function calls that are not right yet."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

from ..catalogue import exercises
from ..verdict import Facts
from .seen import Seen


def of_calls(facts: Facts, is_wrong: Callable[[str, Any], bool]) -> Seen | None:
    """The first exercise that the function calls and whose own function is wrong, as ``is_wrong`` says."""
    for name, function in _called(facts.function):
        marked = hasattr(function, "student") or exercises().lab_of(name) == facts.spec.lab
        if name != facts.spec.name and marked and is_wrong(name, function):
            text = f"The function calls `{name}`, and your `{name}` is not right yet."
            return Seen(f"`{name}` is not right yet", text, f"Fix `{name}` first.", plain=True)
    return None


def _called(function: Any) -> Iterator[tuple[str, Any]]:
    """Functions of the student that are exercises and that a function names, by name."""
    function = inspect.unwrap(function)
    code, scope = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    seen: set[str] = set()
    waiting = [code] if code else []
    while waiting:
        code = waiting.pop()
        waiting += [part for part in code.co_consts if isinstance(part, types.CodeType)]
        for name in code.co_names:
            found = scope.get(name)
            if name in seen or name not in exercises() or found is None:
                continue
            seen.add(name)
            student = getattr(found, "student", found)
            if isinstance(student, types.FunctionType) and not str(student.__module__).startswith("miniquant."):
                yield name, found
