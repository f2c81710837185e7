"""What a detector says: a title, a sentence that is true of every pair it was made from, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

VAGUE = 40  # from this rank on, a sentence says little
MISSING = 40  # so many ranks it costs a sentence if no wrong call shows it, and a part of that if some do not
LONG = 10**15  # a number with more digits is rounded when it is said
OPERATION = re.compile(r"\s(?:[-+×*/]|divided\sby|times|less(?!\sthan))\s")  # words for a computed number
LITTLE = 31  # from this rank on, a place in the code or a part of the input says more


@dataclass(frozen=True)
class Seen:
    """One thing that results show. Two are the same if their sentences are: so what holds for all pairs is found.

    The ``text`` has no capital at its beginning and no full stop. ``rank``: of several, the smallest is said.
    ``plain``: so simple that it comes before a mistake of the catalogue. ``weak``: one pair alone proves nothing.
    ``needs``: so many pairs are needed as proof. ``whole``: it is said only if it holds for all pairs. ``covers``: the
    numbers of the calls that the sentence is about, if these are not all. ``after``: a sentence that follows. ``only``:
    most wrong results show it, and not all of them.
    """

    title: str
    text: str
    cure: str = field(default="", compare=False)
    rank: float = field(default=50, compare=False)
    plain: bool = field(default=False, compare=False)
    weak: bool = field(default=False, compare=False)
    needs: int = field(default=1, compare=False)
    whole: bool = field(default=False, compare=False)
    covers: frozenset[int] = field(default=frozenset(), compare=False)
    after: str = field(default="", compare=False)
    only: bool = field(default=False, compare=False)


def in_common(sets: Sequence[Iterable[Seen]]) -> Seen | None:
    """What all pairs show, the most telling; ``None`` if there is no such thing."""
    found, _ = most_common(sets)
    return found


def all_in_common(sets: Sequence[Iterable[Seen]], most: int = 60) -> list[Seen]:
    """Everything that all pairs show and that is no chance, the most telling first; at most so many."""
    tables = [{seen: seen for seen in sorted(found, key=lambda seen: seen.rank)} for found in sets]
    shared = [seen for seen in (tables[0].values() if tables else ()) if all(seen in table for table in tables)]
    return [seen for seen in shared if len(sets) >= seen.needs][:most]


def most_common(sets: Sequence[Iterable[Seen]], share: float = 1.0, least: int = 1) -> tuple[Seen | None, list[int]]:
    """What the most pairs show, if at least this share and number of them do; with it, the places of these pairs."""
    holders: dict[Seen, list[tuple[int, Seen]]] = {}
    for place, candidates in enumerate(sets):
        for seen in set(candidates):
            holders.setdefault(seen, []).append((place, seen))
    proven = {
        seen: [place for place, _ in found]
        for seen, found in holders.items()
        if len(found) >= max(share * len(sets), least) and _proven(found[0][1], len(found), len(sets))
    }
    if not proven:
        return None, []

    def order(seen: Seen) -> tuple[bool, float, float, str]:
        missing = 1 - len(proven[seen]) / len(sets)
        return seen.rank >= VAGUE, seen.rank + MISSING * missing, seen.rank, seen.text

    best = min(proven, key=order)
    return best, proven[best]


def _proven(seen: Seen, holders: int, of: int) -> bool:
    return holders >= max(seen.needs, 1 + seen.weak) and (holders == of or not seen.whole)


def some(n: int, of: int, what: str = "cases") -> str:
    """``on 3 of 9 cases``, ``on all 9 cases``, ``on the one case``.

    >>> some(2, 9), some(9, 9), some(1, 1, "bad inputs")
    ('on 2 of 9 cases', 'on all 9 cases', 'on the one bad input')
    """
    if n == of == 1:
        return f"on the one {what[:-1]}"
    return f"on all {of} {what}" if n == of else f"on {n} of {of} {what}"


def one_of(values: Sequence[object]) -> str:
    """Values as they are written in Python, the last after "or".

    >>> one_of(["a", "b", "c"]), one_of([4])
    ("'a', 'b' or 'c'", '4')
    """
    *most, last = map(repr, values)
    return f"{', '.join(most)} or {last}" if most else last


def number(value: float) -> str:
    """A number as short as it can be said; a whole one with all its digits.

    >>> number(2.0), number(0.5), number(1 / 3), number(65504)
    ('2', '0.5', '0.3333', '65504')
    """
    if abs(value) < LONG and abs(value - round(value)) <= 1e-9 * abs(value):
        return str(round(value))
    return f"{value + 0.0:.4g}"  # -0.0 is 0


def exactly(value: float) -> str:
    """The same, after "about" if it is not the number itself.

    >>> exactly(4.0), exactly(128 / 127)
    ('4', 'about 1.008')
    """
    said = number(value)
    return said if abs(float(said) - value) <= 1e-6 * abs(value) else f"about {said}"


def bracketed(words: str) -> str:
    """Words for a number with which more is computed: in brackets if they are themselves a sum, product or quotient.

    >>> bracketed("`n` - 1"), bracketed("32 divided by `bits`"), bracketed("the width")
    ('(`n` - 1)', '(32 divided by `bits`)', 'the width')
    """
    return f"({words})" if OPERATION.search(words) else words
