"""Which argument a call changed, and where in it: arrays, tensors, lists, dicts and sets, however deep they lie.

An object that is no plain value, such as a machine that notes every request, may change.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.arrays import is_torch
from .compare import equal

Place = tuple[str, Any, Any]  # what follows the argument's name, say "['w'][0]"; the value there before and after


@dataclass(frozen=True)
class Change:
    """An argument that a call changed: its position, the place in it, and the value there before and after the call."""

    index: int
    before: Any
    after: Any
    place: str = ""  # what follows the argument's name, say "['w'][0]"; empty for the argument itself


@dataclass
class Watched:
    """A function that compares its arguments after each call with what they were before; ``change`` is the first.

    ``given`` is what the last call gave, if it ``returned``.
    """

    function: Callable[..., Any]
    change: Change | None = field(default=None, init=False)
    given: Any = field(default=None, init=False)
    returned: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        functools.update_wrapper(self, self.function, updated=())

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the function gives or raises."""
        before, self.returned = tuple(_copied(argument) for argument in arguments), False
        try:
            self.given = self.function(*arguments, **named)
            self.returned = True
            return self.given
        finally:
            self.change = self.change or change_of(before, arguments)


def change_of(before: tuple[Any, ...], after: tuple[Any, ...]) -> Change | None:
    """The first argument that differs from what it was.

    >>> change_of((1, {"a": [2]}), (1, {"a": [3]}))
    Change(index=1, before=[2], after=[3], place="['a']")
    """
    for index, (old, new) in enumerate(zip(before, after)):
        if old is not new and (found := _first(old, new)):
            place, was, now = found
            return Change(index, was, now, place)
    return None


def _copied(argument: Any) -> Any:
    """A copy to compare with; a stream and the like, which nobody can copy, as it is."""
    try:
        return copy.deepcopy(argument)
    except Exception:
        return argument


def _first(before: Any, after: Any) -> Place | None:
    """The innermost array, list, dict or set that holds a change."""
    if before is after:
        return None
    if isinstance(before, np.ndarray | set | bytearray) or is_torch(before):
        return None if equal(before, after) else ("", before, after)
    if hasattr(before, "state_dict"):
        old, new = dict(before.state_dict()), dict(after.state_dict())
        return None if equal(old, new) else ("", before, after)
    if isinstance(before, dict):
        if list(before) != list(after):
            return "", before, after
        inside = [(f"[{key!r}]", before[key], after[key]) for key in before]
    elif isinstance(before, list | tuple):
        if len(before) != len(after):
            return "", before, after
        names = getattr(before, "_fields", None)
        places = [f".{name}" for name in names] if names else [f"[{i}]" for i in range(len(before))]
        inside = list(zip(places, before, after))
    elif dataclasses.is_dataclass(before) and _is_frozen(before):  # others may note their calls
        names = [each.name for each in dataclasses.fields(before)]
        inside = [(f".{name}", getattr(before, name, None), getattr(after, name, None)) for name in names]
    else:
        return None
    for place, old, new in inside:
        if old is new:  # as a copy of a number or a text is
            continue
        if type(old) is not type(new) or (_is_plain(old) and not equal(old, new)):
            return "", before, after
        if found := _first(old, new):
            return place + found[0], *found[1:]
    return None


def _is_frozen(value: Any) -> bool:
    return bool(value.__dataclass_params__.frozen)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, int | float | complex | str | bytes | np.generic)
