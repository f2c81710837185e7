"""How the arguments of a call are related: which is larger, whose sum reaches another, which arrays differ in what.

Said of functions that answer True or False, where the results themselves show nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ..compare import short
from ..verdict import Call, size_of

LISTED = 4  # so many inputs are listed
LONGEST = 90  # characters of one of them


def related(arguments: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Properties that two or three arguments have together: (the words for it, whether it is so)."""
    whole = {name: int(v) for name, v in arguments.items() if _is_whole(v)}
    for (a, x), (b, y) in combinations(whole.items(), 2):
        yield f"where `{a}` is `{b}`", x == y
        yield f"where `{a}` is more than `{b}`", x > y
        yield f"where `{a}` is less than `{b}`", x < y
    if len(whole) == 3:
        for (a, x), (b, y) in combinations(whole.items(), 2):
            ((c, z),) = ((name, value) for name, value in whole.items() if name not in (a, b))
            yield f"where `{a}` + `{b}` is `{c}`", x + y == z
            yield f"where `{a}` + `{b}` is more than `{c}`", x + y > z
            yield f"where `{a}` + `{b}` is less than `{c}`", x + y < z
            yield f"where `{a}` + `{b}` is 2**64 or more", x + y >= 2**64
    arrays = {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}
    for one, two in combinations(arrays.items(), 2):
        yield from _of_two(f"`{one[0]}` and `{two[0]}`", one[1], two[1])
    for name, value in arguments.items():
        if isinstance(value, str) and value.split():
            yield f"where `{name}` ends with {value.split()[-1]!r}", True
            yield f"where `{name}` has a point", "." in value
        elif isinstance(value, bytes):
            yield f"where `{name}` begins with {value[:4]!r}", len(value) >= 4
            for length in (1, 2, 4, 8, 16, 32):
                yield f"where `{name}` has fewer than {length} bytes", len(value) < length


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _of_two(names: str, x: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, bool]]:
    yield f"where {names} have different dtypes", x.dtype != y.dtype
    yield f"where {names} have different shapes", x.shape != y.shape
    yield f"where {names} have different numbers of values", x.size != y.size
    if x.dtype.kind not in "iuf" or y.dtype.kind not in "iuf":
        return
    yield f"where {names} both have NaN", bool(np.isnan(x).any() and np.isnan(y).any())
    with np.errstate(all="ignore"):
        alike = x.shape == y.shape and bool(np.array_equal(x, y))
        yield f"where {names} are equal for `==`", alike
        yield f"where {names} are not equal for `==`", not alike
        if x.size == y.size:
            one, two = (np.sort(v.reshape(-1).astype(float)) for v in (x, y))
            yield f"where {names} have the same values in another order", bool((one == two).all()) and not alike


def listed(names: Sequence[str], wrong: Sequence[Call]) -> str:
    """``; wrong inputs are, for example, `(offset, size)` = (9, 0), (5, 0)``: the smallest of them; "" if long."""
    chosen = sorted(wrong, key=lambda call: (size_of(call.case), call.number))[:LISTED]
    texts = [_shown(call.case) for call in chosen]
    if any(len(text) > LONGEST for text in texts) or len({*texts}) < len(texts):
        return ""
    head = f"({', '.join(names)})" if len(names) > 1 else names[0]
    which = "wrong inputs are, for example," if len(chosen) > 1 else "a wrong input is"
    return f"; {which} `{head}` = {', '.join(texts)}"


def _shown(case: Sequence[Any]) -> str:
    parts = [repr(part) if isinstance(part, bytes) else short(part, LONGEST) for part in case]
    return f"({', '.join(parts)})" if len(parts) > 1 else parts[0]
