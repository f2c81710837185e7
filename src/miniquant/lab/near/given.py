"""A solution that is given other arrays, and other texts and lists inside an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..spec import Function
from .arrays import ARRAY_STEPS, ONE_AXIS_STEPS
from .places import NUMBER, STEP
from .wraps import WRAPS

INPUT = NUMBER + 0.4  # the rank of the simplest of them
Step = Callable[[Any], Any]

TEXTS: tuple[tuple[str, Step], ...] = (
    ("turns {} into small letters", str.lower),
    ("turns {} into capital letters", str.upper),
    ("strips white space from the end of {}", str.rstrip),
    ("strips white space from the beginning of {}", str.lstrip),
    ("strips white space from both ends of {}", str.strip),
    ("leaves out the spaces of {}", lambda s: s.replace(" ", "")),
    ("leaves out the first letter of {}", lambda s: s[1:]),
    ("leaves out the last letter of {}", lambda s: s[:-1]),
    ("turns {} around", lambda s: s[::-1]),
    ("leaves out characters of {} outside ASCII", lambda s: s.encode("ascii", "ignore").decode()),
    ("puts ? for characters of {} outside ASCII", lambda s: s.encode("ascii", "replace").decode()),
    ("takes {} up to its first newline", lambda s: s.split("\n")[0]),
    ("writes `\\n` for a newline in {}", lambda s: s.replace("\n", "\\n")),
    ("puts a space for a newline in {}", lambda s: s.replace("\n", " ")),
    ("leaves out newlines in {}", lambda s: s.replace("\n", "")),
)
LISTS: tuple[tuple[str, Step], ...] = (
    ("turns {} around", lambda x: x[::-1]),
    ("sorts {}", lambda x: type(x)(sorted(x))),
    ("leaves out the first item of {}", lambda x: x[1:]),
    ("leaves out the last item of {}", lambda x: x[:-1]),
    ("takes only the first item of {}", lambda x: x[:1]),
    ("takes only the last item of {}", lambda x: x[-1:]),
    ("takes only the first two items of {}", lambda x: x[:2]),
    ("takes only the last two items of {}", lambda x: x[-2:]),
    ("takes each item of {} once", lambda x: type(x)(dict.fromkeys(x))),
    ("takes 1 for the first item of {}", lambda x: type(x)([1, *x[1:]]) if len(x) else x),
    ("takes 1 for the last item of {}", lambda x: type(x)([*x[:-1], 1]) if len(x) else x),
    ("takes (1,) where {} is empty", lambda x: x if len(x) else type(x)([1])),
)
OF_VALUES: tuple[tuple[str, Step], ...] = (
    ("turns values of {} that are numbers into texts", lambda v: str(v) if isinstance(v, int | float) else v),
    ("turns values of {} that are numbers into floats", lambda v: float(v) if type(v) is int else v),
    ("turns values of {} that are numbers into integers", lambda v: int(v) if isinstance(v, float) else v),
    *((phrase, lambda v, step=step: step(v) if isinstance(v, str) else v) for phrase, step in TEXTS),
    *((phrase, lambda v, step=step: step(v) if isinstance(v, tuple | list) else v) for phrase, step in LISTS),
)


def of_arguments(
    reference: Function, names: tuple[str, ...], case: tuple[Any, ...]
) -> Iterator[tuple[str, float, Function]]:
    """What the solution does with other arguments: (words, rank, function). ``case`` shows the types."""
    for index, name in enumerate(names[: len(case)]):
        value = case[index]
        for words, rank, step in _steps(value):
            yield words.format(f"`{name}`"), rank, Given(reference, index, type(value), step)


@dataclass(frozen=True, eq=False)
class Given:
    """The solution with a step on one of its arguments, if that is of the kind for which the step is."""

    reference: Function
    index: int
    kind: type
    step: Step

    def __call__(self, *arguments: Any) -> Any:
        """What the solution gives."""
        changed = list(arguments)
        if isinstance(changed[self.index], self.kind):
            changed[self.index] = self.step(changed[self.index])
        return self.reference(*changed)


def _steps(value: Any) -> Iterator[tuple[str, float, Step]]:
    if isinstance(value, np.ndarray):
        for step, words, far in (ONE_AXIS_STEPS if value.ndim == 1 else ARRAY_STEPS).values():
            yield words, INPUT + far, step
        for name, (wrap, words) in WRAPS.items():
            if name[0] != "i" and name[0] != "u":
                yield words, INPUT + 0.5, wrap
        if value.dtype.kind == "i":
            for mask in (15, 255):
                yield f"takes {{}} & {mask}", INPUT + 0.4, _masked(mask)
    elif isinstance(value, bool):
        yield "takes the opposite of {}", INPUT, lambda x: not x
    elif isinstance(value, dict):
        for words, step in TEXTS:
            yield words.format("the keys of {}"), STEP, _of_keys(step)
        for words, step in OF_VALUES:
            words = words if words.startswith("turns values") else words.format("the values of {}")
            yield words, STEP, _of_each(step)
    elif isinstance(value, str):
        for words, step in TEXTS:
            yield words, INPUT, step
    elif isinstance(value, tuple):
        for words, step in LISTS:
            yield words, INPUT, step


def _masked(mask: int) -> Step:
    return lambda x: x.astype(np.int64) & mask


def _of_keys(step: Step) -> Step:
    return lambda x: {step(key) if isinstance(key, str) else key: value for key, value in x.items()}


def _of_each(step: Step) -> Step:
    return lambda x: {key: step(value) for key, value in x.items()}
