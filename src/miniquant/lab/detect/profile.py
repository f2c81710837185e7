"""What wrong results without a pattern have in common: their lengths, and the first place that is wrong in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compare import equal
from ..verdict import Call

UNITS = {
    "bytes": ("byte", "bytes"),
    "str": ("character", "characters"),
    "list": ("item", "items"),
    "tuple": ("item", "items"),
}
FEWEST = 3  # results of which the first wrong place is said


def profile(calls: Sequence[Call], tolerance: float) -> str:
    """``; the number of bytes is right in all of them; the first 4 are right``: of bytes, texts, lists and tuples."""
    kinds = {type(x).__name__ for call in calls for x in (call.expected.result, call.outcome.result)}
    if len(kinds) != 1 or (kind := kinds.pop()) not in UNITS:
        return ""
    one, many = UNITS[kind]
    off = [len(call.outcome.result) - len(call.expected.result) for call in calls]
    firsts = [_first(call.expected.result, call.outcome.result, tolerance) for call in calls]
    said = [_of_lengths(off, one, many)]
    alike, least = set(firsts), min(firsts)
    if len(calls) >= FEWEST and len(alike) == 1:
        said.append(f"the first {one} that is wrong is {one} {least}, counted from 0, in all of them")
    elif least:
        said.append(f"the first {f'{least} {many} are' if least > 1 else f'{one} is'} right in all of them")
    return "; " + "; ".join(part for part in said if part) if any(said) else ""


def _of_lengths(off: Sequence[int], one: str, many: str) -> str:
    low, high = min(off), max(off)
    if low == high == 0:
        return f"the number of {many} is right in all of them"
    if low <= 0 <= high:
        return f"the number of {many} is wrong in {sum(n != 0 for n in off)} of {len(off)}"
    few, most = sorted((abs(low), abs(high)))
    count = f"{few}" if few == most else f"{few} to {most}"
    return f"each has {count} {one if most == 1 else many} too {'many' if low > 0 else 'few'}"


def _first(e: Any, g: Any, tolerance: float) -> int:
    """The first place at which two sequences differ."""
    if isinstance(e, bytes | str):
        pairs = (a == b for a, b in zip(e, g))
    else:
        pairs = (equal(a, b, tolerance) for a, b in zip(e, g))
    return next((place for place, same in enumerate(pairs) if not same), min(len(e), len(g)))
