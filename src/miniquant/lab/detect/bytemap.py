"""Whether every byte or bit of a wrong result is one of the right result, in another place, or always the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..compare import equal
from ..verdict import Facts
from .seen import Seen

FEWEST = 5  # calls; with fewer, places may agree by chance
LONGEST = 16  # bytes or bits
MOST_BYTES, MOST_BITS = 4, 2  # so many parts a sentence has at most


def of_map(facts: Facts) -> list[Seen]:
    """Where each byte, or bit, of the wrong results comes from; it holds on all good inputs."""
    found = _of_all(facts)
    return [replace(found, text=f"{found.text}, {facts.tried}")] if found else []


def _of_all(facts: Facts) -> Seen | None:
    """One sentence on where each byte, or bit, of the wrong results comes from; it holds on all good inputs."""
    every = [*facts.comparable, *(call for call in facts.fresh if call.comparable)]
    pairs = [(call.expected.result, call.outcome.result) for call in every]
    if len(pairs) < FEWEST:
        return None
    if all(isinstance(e, bytes) and isinstance(g, bytes) and len(e) == len(g) == len(pairs[0][0]) for e, g in pairs):
        if 1 < len(pairs[0][0]) <= LONGEST:
            return _seen(pairs, "byte", "", "")
        return None
    if all(type(e) is int and type(g) is int and e >= 0 and g >= 0 for e, g in pairs):
        return _of_integers(pairs, "")
    if all(isinstance(e, tuple) and isinstance(g, tuple) and len(e) == len(g) for e, g in pairs):
        return _of_parts(pairs)
    return None


def _of_parts(pairs: Sequence[tuple[Any, Any]]) -> Seen | None:
    """The same of the parts of a tuple that are wrong."""
    names = getattr(pairs[0][0], "_fields", [f"item {i}" for i in range(len(pairs[0][0]))])
    texts = []
    for index, name in enumerate(names):
        inner = [(e[index], g[index]) for e, g in pairs]
        if all(equal(e, g) for e, g in inner):
            continue
        if not all(type(e) is int and type(g) is int and e >= 0 and g >= 0 for e, g in inner):
            return None
        found = _of_integers(inner, f"in {name}, ")
        if found is None:
            return None
        texts.append(found.text)
    return Seen("parts of numbers", "; ".join(texts), "", 13) if texts else None


def _of_integers(pairs: Sequence[tuple[int, int]], begin: str) -> Seen | None:
    largest = max(max(e, g) for e, g in pairs)
    if largest < 2**16:
        n = max(8 * (1 + (largest >= 256)), 1)
        bits: list[tuple[Any, Any]] = [
            ([e >> i & 1 for i in range(n)], [g >> i & 1 for i in range(n)]) for e, g in pairs
        ]
        return _seen(bits, "bit", begin, " (bit 0 is the lowest)")
    if largest < 2**64:
        n = 4 if largest < 2**32 else 8
        data = [(e.to_bytes(n, "little"), g.to_bytes(n, "little")) for e, g in pairs]
        return _seen(data, "byte", begin, " (byte 0 is the lowest)")
    return None


def _seen(pairs: Sequence[tuple[Any, Any]], unit: str, begin: str, which: str) -> Seen | None:
    n = len(pairs[0][0])
    sources: list[int | None] = []
    fixed: dict[int, int] = {}
    for place in range(n):
        values = [g[place] for _, g in pairs]
        if all(e[place] == value for (e, _), value in zip(pairs, values)):
            sources.append(place)
            continue
        if len(set(values)) == 1:
            fixed[place] = values[0]
            sources.append(None)
            continue
        found = [i for i in range(n) if all(e[i] == value for (e, _), value in zip(pairs, values))]
        if not found:
            return None
        before = sources[-1] if sources else None
        sources.append(min(found, key=lambda i: (before is None or abs(i - before) != 1, i)))
    moved = {place: source for place, source in enumerate(sources) if source is not None and source != place}
    if not moved and not fixed:
        return None
    parts = [
        f"{unit} {place} is always {f'{value:02x}' if unit == 'byte' else value}" for place, value in fixed.items()
    ]
    parts += [_run(unit, a, b, moved[a], moved[b]) for a, b in _together(moved)]
    if len(parts) > (MOST_BITS if unit == "bit" else MOST_BYTES):
        return None
    listed = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
    text = f"{begin}{listed}{which}"
    kinds = [f"{unit}s that never change"] * bool(fixed) + [f"{unit}s in other places"] * bool(moved)
    return Seen(" and ".join(kinds), text, "", 13)


def _together(moved: dict[int, int]) -> list[tuple[int, int]]:
    """Places that follow each other and whose sources do so, too."""
    runs: list[tuple[int, int]] = []
    for place, source in moved.items():
        if runs and runs[-1][1] == place - 1:
            first, last = runs[-1]
            step = source - moved[last]
            if abs(step) == 1 and (first == last or step == moved[last] - moved[last - 1]):
                runs[-1] = (first, place)
                continue
        runs.append((place, place))
    return runs


def _run(unit: str, a: int, b: int, source_a: int, source_b: int) -> str:
    if a == b:
        return f"{unit} {a} is {unit} {source_a} of the right one"
    to = "and" if b == a + 1 else "to"
    back = "and" if b == a + 1 else "down to" if source_b < source_a else "to"
    return f"{unit}s {a} {to} {b} are {unit}s {source_a} {back} {source_b} of the right one"
