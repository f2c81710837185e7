"""Whole numbers that always come out as the same other ones: -8 as 8, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..verdict import Call, Facts
from .factors import integers_of
from .inside import parts_of
from .seen import Seen

MOST = 512  # different right values
FEW = 3  # wrong ones that are all said
LEAST = 12  # values that are compared in all


def of_mapping(facts: Facts, calls: Sequence[Call]) -> Iterator[Seen]:
    """What each right value comes out as, if that is always the same."""
    if not all(isinstance(call.expected.result, np.ndarray | bytes | list | dict) for call in calls):
        return
    streams: dict[str, list[tuple[Any, Any]]] = {}
    for call in facts.comparable:
        e, g = call.expected.result, call.outcome.result
        if isinstance(e, dict):
            e, g = _numbers(e, g)
        if not isinstance(e, bytes):
            streams.setdefault("", []).append((e, g))
        if found := integers_of(facts, call):
            streams.setdefault(found[0], []).append(found[1:])
        elif facts.spec.factors:
            return
        pe, pg = parts_of(facts, call, e), parts_of(facts, call, g)
        for name in pe:
            streams.setdefault(name, []).append((pe[name], pg.get(name)))
    for name, pairs in streams.items():
        if seen := _mapping(f"in {name}, " if name else "", pairs):
            wrong = [n for n, others in streams.items() if n and n != name and not all(_equal(*x) for x in others)]
            if not wrong or not name:
                yield seen


def _numbers(e: Any, g: Any) -> tuple[list[Any], list[Any]]:
    """The values of two dicts that have the same keys, if all are numbers."""
    shared = list(e) if isinstance(g, dict) and e.keys() == g.keys() else []
    pairs = [(e[key], g[key]) for key in shared]
    whole = all(type(x) is int for pair in pairs for x in pair)
    return ([a for a, _ in pairs], [b for _, b in pairs]) if whole else ([""], [""])


def _equal(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and bool((a == b).all())


def _mapping(where: str, pairs: Sequence[tuple[Any, Any]]) -> Seen | None:
    found: dict[int, int] = {}
    total = n_wrong = 0
    for e, g in pairs:
        try:
            a, b = np.asarray(e), np.asarray(g)
        except Exception:
            return None
        if not a.size and not b.size:
            continue
        if isinstance(e, np.ndarray) and a.dtype != b.dtype:
            return None
        if a.dtype.kind not in "iu" or b.dtype.kind not in "iu" or a.shape != b.shape or not a.ndim:
            return None
        total += a.size
        n_wrong += int((a != b).sum())
        for right, mine in set(zip(a.reshape(-1).tolist(), b.reshape(-1).tolist())):
            if found.setdefault(right, mine) != mine or len(found) > MOST:
                return None
    wrong = {right: mine for right, mine in found.items() if right != mine}
    if total < LEAST or len(found) < 4 or not wrong or n_wrong < 2 * len(wrong):
        return None  # values that come once each always depend on the right ones
    shown = sorted(wrong, key=lambda x: (abs(x), -x))[:FEW]
    each = ", ".join(f"{wrong[x]} where {x} is expected" for x in shown)
    if len(wrong) <= FEW:
        text = f"{where}the result has {each}, in every place, and all other values are right"
        return Seen("always the same values", text, "Work one of these values by hand.", 12.5)
    text = f"{where}a wrong value is always the same for the same right one: {each}, and so on, in every place"
    return Seen("other values for some", text, "Work one of these values by hand.", 24.5)
