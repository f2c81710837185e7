"""A solution that works with other arguments: one left out, one too small, a list without its last value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from ..attempt import cases_of
from ..spec import Exercise, Function

ONE, BOTH = 2.6, 2.9  # ranks: a changed argument, and the same change of two
Change = tuple[str, Callable[[Any], Any]]

WHOLE: tuple[Change, ...] = (
    ("with {} + 1 in place of {}", lambda x: x + 1),
    ("with {} - 1 in place of {}", lambda x: max(x - 1, 0) if x >= 0 else x - 1),
    ("with twice {} in place of {}", lambda x: 2 * x),
    ("with half of {} in place of {}", lambda x: x // 2),
    ("with 0 in place of {}", lambda x: 0),
    ("with 1 in place of {}", lambda x: 1),
    ("with 2 in place of {}", lambda x: 2),
    ("with -{} in place of {}", lambda x: -x),
    ("with the absolute value of {}", abs),
    ("with the square of {} in place of {}", lambda x: x * x),
    ("with 2**{} in place of {}", lambda x: 2 ** min(max(x, 0), 64)),
    ("with the lowest 8 bits of {}", lambda x: x & 0xFF),
    ("with the lowest 16 bits of {}", lambda x: x & 0xFFFF),
    ("with the lowest 24 bits of {}", lambda x: x & 0xFFFFFF),
    ("with the lowest 32 bits of {}", lambda x: x & 0xFFFFFFFF),
    ("with 8 times {} in place of {}", lambda x: 8 * x),
    ("with {} divided by 8 in place of {}", lambda x: x // 8),
)
REAL: tuple[Change, ...] = (
    ("with twice {} in place of {}", lambda x: 2 * x),
    ("with half of {} in place of {}", lambda x: x / 2),
    ("with 0 in place of {}", lambda x: 0.0),
    ("with 1 in place of {}", lambda x: 1.0),
    ("with -{} in place of {}", lambda x: -x),
    ("with the absolute value of {}", abs),
    ("with the square of {} in place of {}", lambda x: x * x),
    ("with {} rounded to a whole number", lambda x: float(round(x)) if abs(x) < 2**53 else x),
    ("with {} cut to a whole number", lambda x: float(int(x)) if abs(x) < 2**53 else x),
)
ROW: tuple[Change, ...] = (
    ("without the last of {}", lambda x: x[:-1] if len(x) > 1 else x),
    ("without the first of {}", lambda x: x[1:] if len(x) > 1 else x),
    ("with only the first of {}", lambda x: x[:1]),
    ("with only the last of {}", lambda x: x[-1:]),
    ("with {} in reversed order", lambda x: x[::-1]),
    ("with every second one of {}", lambda x: x[::2]),
    ("with the first half of {}", lambda x: x[: len(x) // 2] if len(x) > 1 else x),
    ("with {} moved by one place", lambda x: _moved(x)),
)
ARRAY: tuple[Change, ...] = (  # and those of ``given``
    ("with the squares of {}", lambda x: x * x),
    ("with {} less its mean", lambda x: x - x.mean()),
    ("with {} less its minimum", lambda x: x - x.min()),
    ("with {} divided by its largest value", lambda x: x / x.max()),
    ("with twice {} in place of {}", lambda x: 2 * x),
    ("with half of {} in place of {}", lambda x: x / 2),
)
SORTABLE: tuple[Change, ...] = (
    ("with {} in sorted order", sorted),
    ("with each of {} only once", lambda x: list(dict.fromkeys(x))),
)
KEYED: tuple[Change, ...] = (
    ("with {} in sorted order", lambda x: dict(sorted(x.items()))),
    ("with {} in reversed order", lambda x: dict(reversed(x.items()))),
    ("without the last key of {}", lambda x: dict(list(x.items())[:-1])),
    ("without the first key of {}", lambda x: dict(list(x.items())[1:])),
    ("with only the first key of {}", lambda x: dict(list(x.items())[:1])),
)
TEXT: tuple[Change, ...] = (
    ("with {} in small letters", str.lower),
    ("with {} without white space at its end", str.rstrip),
    ("with {} without white space at its beginning", str.lstrip),
    ("with {} without white space at both ends", str.strip),
)


def _moved(x: Any) -> Any:
    return np.roll(x, -1, 0) if isinstance(x, np.ndarray) else x[1:] + x[:1]


def of_inputs(spec: Exercise) -> Iterator[tuple[str, float, Function]]:
    """For each change of an argument: what a solution with it does, its rank, and the solution."""
    cases = cases_of(spec)
    names = tuple(spec.reference.__code__.co_varnames[: spec.reference.__code__.co_argcount])
    if not cases or any(len(case) != len(names) for case in cases):
        return
    kinds = [_kind([case[index] for case in cases]) for index in range(len(names))]
    for index, kind in enumerate(kinds):
        for words, function in _changes(kind):
            yield f"works {_said(words, [names[index]])}", ONE, _changed(spec.reference, {index: function})
    for one, two in permutations(range(len(names)), 2):
        if kinds[one] and kinds[one] == kinds[two]:
            if one < two:
                words = f"works with `{names[one]}` and `{names[two]}` exchanged"
                yield words, ONE, _exchanged(spec.reference, one, two)
            words = f"works with `{names[one]}` in place of `{names[two]}`"
            yield words, ONE, _replaced(spec.reference, one, two)
    for kind in dict.fromkeys(kinds):
        same = [index for index, other in enumerate(kinds) if other == kind]
        if len(same) > 1:
            for words, function in _changes(kind):
                changed = _changed(spec.reference, dict.fromkeys(same, function))
                yield f"works {_said(words, [names[index] for index in same])}", BOTH, changed


def _said(words: str, names: Sequence[str]) -> str:
    marked = [f"`{name}`" for name in names]
    listed = f"{', '.join(marked[:-1])} and {marked[-1]}" if len(marked) > 1 else marked[0]
    return words.replace("{}", listed)


def _kind(values: Sequence[Any]) -> str:
    """What all values of an argument are; "" for what is left alone."""
    for name, types in (("int", int), ("float", float), ("bytes", bytes), ("str", str), ("list", list), ("dict", dict)):
        if all(isinstance(value, types) and not isinstance(value, bool) for value in values):
            return name
    if all(isinstance(value, np.ndarray) and value.dtype.kind in "iuf" for value in values):
        return f"array {min(value.ndim for value in values)}"
    return ""


def _changes(kind: str) -> tuple[Change, ...]:
    plain: dict[str, tuple[Change, ...]] = {
        "int": WHOLE,
        "float": REAL,
        "bytes": ROW,
        "str": (*ROW[:5], *TEXT),
        "list": (*ROW, *SORTABLE),
        "dict": KEYED,
    }
    if kind.startswith("array"):
        return ARRAY
    return plain.get(kind, ())


def _changed(solution: Function, functions: dict[int, Callable[[Any], Any]]) -> Function:
    def other(*arguments: Any) -> Any:
        return solution(*(_cast(functions[i], x) if i in functions else x for i, x in enumerate(arguments)))

    return other


def _cast(function: Callable[[Any], Any], value: Any) -> Any:
    """The changed value, with the dtype that it had."""
    with np.errstate(all="ignore"):
        made = function(value)
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(made).astype(value.dtype)
    return made


def _exchanged(solution: Function, one: int, two: int) -> Function:
    def other(*arguments: Any) -> Any:
        changed = list(arguments)
        changed[one], changed[two] = changed[two], changed[one]
        return solution(*changed)

    return other


def _replaced(solution: Function, one: int, two: int) -> Function:
    def other(*arguments: Any) -> Any:
        changed = list(arguments)
        changed[two] = changed[one]
        return solution(*changed)

    return other
