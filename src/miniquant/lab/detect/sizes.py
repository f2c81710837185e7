"""Lengths that the arguments of a call have: a wrong number may be too large by one of them, or by a factor of it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence

import numpy as np

from ..attempt import cases_of
from ..spec import Case, Exercise
from ..verdict import Call, Facts


def sizes_of(facts: Facts, call: Call) -> dict[str, int]:
    """Lengths that an argument has, by the words for them; not those that are the same in all cases.

    What is always 2 cannot be told from the number 2.
    """
    always = _always(facts.spec)
    return {words: n for words, n in _sizes(facts.names, call.case).items() if always.get(words) != n}


@functools.lru_cache(maxsize=256)
def _always(spec: Exercise) -> dict[str, int]:
    """The lengths that are the same in all cases."""
    names = tuple(inspect.signature(spec.reference).parameters)
    first, *rest = [_sizes(names, case) for case in cases_of(spec)]
    return {words: n for words, n in first.items() if rest and all(table.get(words) == n for table in rest)}


def _sizes(names: Sequence[str], case: Case) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, value in zip(names, case):
        if isinstance(value, np.ndarray):
            sizes[f"the number of values in `{name}`"] = int(value.size)
            for axis, length in enumerate(value.shape if value.ndim > 1 else ()):
                sizes[f"`{name}.shape[{axis}]`"] = int(length)
        elif isinstance(value, list | tuple | dict | str | bytes):
            sizes[f"`len({name})`"] = len(value)
        elif isinstance(value, int) and not isinstance(value, bool) and 1 < value < 10**6:
            sizes[f"`{name}`"] = value
    return sizes
