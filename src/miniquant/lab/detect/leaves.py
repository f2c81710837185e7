"""Results that are containers in containers: which values deep inside are wrong, and what these have in common."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..compare import equal, short
from .parts import asked_for, named_type
from .seen import Seen, exactly, number

MOST = 400  # values that are compared
NAMED = 2  # places that are named


@dataclass(frozen=True)
class Leaf:
    """A wrong value: where it stands, what is right there, and what is found."""

    path: tuple[Any, ...]
    right: Any
    mine: Any


def of_leaves(expected: Any, got: Any, tolerance: float = 0.0) -> Iterator[Seen]:
    """Which values inside two containers differ, by the end of their paths, and what all of them have in common."""
    if not isinstance(expected, dict | list | tuple) or type(expected) is not type(got):
        return
    wrong = list(_leaves(expected, got, (), tolerance))
    if not wrong or len(wrong) > MOST or any(not leaf.path for leaf in wrong):
        return
    simple = not any(isinstance(leaf.right, dict | list | tuple) for leaf in wrong)
    relations = [*_relations(wrong, tolerance), *(_neighbours(expected, wrong) if simple else ())]
    places = _places(wrong)
    for text, rank in relations:
        yield Seen("every wrong value", f"every value that is wrong {text}", "", rank + 2, weak=len(wrong) == 1)
        for place, said in places:
            each = "each" if " and " in place or "every" in said else "it"
            yield Seen(f"{place} wrong", f"{said}: {each} {text}", "", rank, weak=len(wrong) == 1)
    for n, (place, said) in enumerate(places):
        if len(wrong) < len(expected):  # where it is comes after how it is
            yield Seen(f"{place} wrong", said, "", 33 + n)
    yield from _taken(expected, got, wrong)


def _leaves(e: Any, g: Any, path: tuple[Any, ...], tolerance: float) -> Iterator[Leaf]:
    """The differing values at the ends of two containers of the same structure."""
    if isinstance(e, dict) and isinstance(g, dict) and e.keys() == g.keys():
        for key in e:
            yield from _leaves(e[key], g[key], (*path, key), tolerance)
    elif isinstance(e, list | tuple) and type(e) is type(g) and len(e) == len(g):
        for place, (a, b) in enumerate(zip(e, g)):
            yield from _leaves(a, b, (*path, place), tolerance)
    elif not equal(e, g, tolerance):
        yield Leaf(path, e, g)


def _places(wrong: Sequence[Leaf]) -> list[tuple[str, str]]:
    """The ends of the paths in words, if there are one or two of them: ``item 1 of 'data_offsets'``; and a sentence.

    Such an end may be in several parts of the result, of which only some are wrong.
    """
    found: list[tuple[str, str]] = []
    for length in (2, 1):
        ends = sorted(dict.fromkeys(leaf.path[-length:] for leaf in wrong), key=repr)
        if len(ends) <= NAMED and all(len(leaf.path) > length for leaf in wrong):
            words = " and ".join(" of ".join(map(_step, reversed(end))) for end in ends)
            inner = " of a part of the result" if any(isinstance(end[0], int) for end in ends) else ""
            said = f"every wrong value is {words.replace(' and ', ' or ')}{inner}"
            found.append((words, said))
    keys = {leaf.path[0] for leaf in wrong}
    if len(keys) <= NAMED and all(len(leaf.path) == 1 and not isinstance(leaf.path[0], int) for leaf in wrong):
        words = " and ".join(f"the value of {_step(key)}" for key in sorted(keys, key=repr))
        found.append((words, f"only {words} {'are' if len(keys) > 1 else 'is'} wrong"))
    return list(dict.fromkeys(found))


def _step(key: Any) -> str:
    return f"item {key}" if isinstance(key, int) else short(key, 40)


def _relations(wrong: Sequence[Leaf], tolerance: float) -> Iterator[tuple[str, float]]:
    """What holds for all wrong values: the words that follow "it", and a rank."""
    pairs = [(leaf.right, leaf.mine) for leaf in wrong]
    mine = [g for _, g in pairs]
    if all(g is None for g in mine):
        yield "is None", 9
    if len({repr(g) for g in mine}) == 1 < len({repr(e) for e, _ in pairs}):
        yield f"is {short(mine[0], 40)} in each place", 10
    if all(isinstance(g, str) and not isinstance(e, str) and g == str(e) for e, g in pairs):
        yield "is the text of the right value", 8
    types = {(named_type(e), named_type(g)) for e, g in pairs}
    accepted = all(_has_its_type(e, g) for e, g in pairs)
    if len(types) == 1 and types != {(a, a) for a, _ in types} and not accepted:
        ((right, found),) = types
        yield f"is {found}, and {asked_for(right)}", 14
    if all(isinstance(x, str) for pair in pairs for x in pair):
        yield from _texts([(str(e), str(g)) for e, g in pairs])
    if all(_is_number(x) for pair in pairs for x in pair):
        yield from _numbers(pairs, tolerance)
    if all(hasattr(x, "shape") and hasattr(x, "dtype") and hasattr(x, "reshape") for pair in pairs for x in pair):
        yield from _arrays(pairs)


def _arrays(pairs: Sequence[tuple[Any, Any]]) -> Iterator[tuple[str, float]]:
    """Arrays and tensors with the right values in another shape or type."""
    alike = [equal(e.reshape(-1), g.reshape(-1)) for e, g in pairs]
    if all(alike):
        squeezed = all(tuple(g.shape) == tuple(n for n in e.shape if n != 1) for e, g in pairs)
        yield "has the right values and another shape" + (": axes of length 1 are lost" if squeezed else ""), 8
    types = {str(g.dtype) for _, g in pairs}
    if len(types) == 1 and all(e.dtype != g.dtype for e, g in pairs):
        yield f"has the dtype {types.pop().removeprefix('torch.')}, and another one is asked for", 13


def _is_number(x: Any) -> bool:
    """Whether it is a finite number, and no integer beyond all floats."""
    return isinstance(x, int | float) and not isinstance(x, bool) and abs(x) <= sys.float_info.max


def _has_its_type(right: Any, mine: Any) -> bool:
    """Whether a check takes a value for one of the right type: an int is as good as a float."""
    if isinstance(right, bool | np.bool_) or isinstance(mine, bool | np.bool_):
        return isinstance(right, bool | np.bool_) and isinstance(mine, bool | np.bool_)
    wanted = Integral if isinstance(right, Integral) else Real if isinstance(right, Real) else type(right)
    return isinstance(mine, wanted)


def _numbers(pairs: Sequence[tuple[Any, Any]], tolerance: float) -> Iterator[tuple[str, float]]:
    off = [g - e for e, g in pairs]
    if not any(off):
        return  # only their types differ
    for bits in (8, 16, 32):
        if all(isinstance(x, int) for pair in pairs for x in pair) and all(g == e % 2**bits for e, g in pairs):
            yield f"is the remainder of the right value and 2**{bits}", 9
    if all(abs(g + e) <= tolerance for e, g in pairs):
        yield "has the other sign", 9
    if len(set(off)) == 1:
        yield f"is too {'large' if off[0] > 0 else 'small'} by {exactly(abs(off[0]))}", 10
    elif len(off) > 2 and len({b - a for a, b in pairwise(off)}) == 1 and off[0] * (off[1] - off[0]) > 0:
        words = ", ".join(number(abs(x)) for x in off[:3])
        yield f"is too {'large' if off[0] > 0 else 'small'} by {words} and so on: a difference that adds up", 12
    ratios = {g / e for e, g in pairs if e}
    if len(ratios) == 1 and all(e or not g for e, g in pairs) and len(pairs) > 1:
        (ratio,) = ratios
        if ratio > 0 and number(ratio) != "1":
            yield f"is {exactly(ratio)} times the right value", 10
    if len(pairs) > 1 and (all(x > 0 for x in off) or all(x < 0 for x in off)):
        more = all(abs(a) <= abs(b) for a, b in pairwise(off)) and len(off) > 2 and abs(off[0]) < abs(off[-1])
        how = ", at no place by less than at the place before" if more else ""
        yield f"is too {'large' if off[0] > 0 else 'small'}{how}", 30


TEXTS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("has other capitals", str.lower),
    ("has other capitals", str.upper),
    ("has no white space at its end", str.rstrip),
    ("has no white space at its beginning", str.lstrip),
    ("has no white space at both its ends", str.strip),
    ("is reversed", lambda e: e[::-1]),
    ("is the repr of the right text", repr),
    ("is hexadecimal", lambda e: hex(int(e)) if e.isdigit() else e),
    ("has a question mark for each character outside ASCII", lambda e: e.encode("ascii", "replace").decode()),
    (
        "has a question mark for each character outside Latin-1",
        lambda e: e.encode("latin-1", "replace").decode("latin-1"),
    ),
    ("has no characters outside ASCII", lambda e: e.encode("ascii", "ignore").decode()),
    ("has escapes for characters outside ASCII", lambda e: e.encode("ascii", "backslashreplace").decode()),
    ("is the UTF-8 of the right text, read as Latin-1", lambda e: e.encode("utf-8", "replace").decode("latin-1")),
    *((f"ends at the first `{sep}` of the right text", lambda e, s=sep: e.split(s)[0]) for sep in "._ /:"),
    *((f"is what follows the last `{sep}` of the right text", lambda e, s=sep: e.split(s)[-1]) for sep in "._ /:"),
)


def _texts(pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, float]]:
    found = [words for words, change in TEXTS if all(change(e) == g for e, g in pairs)]
    if found:
        yield from ((words, 8 + rank / 100) for rank, words in enumerate(dict.fromkeys(found)))
        return
    inserted = {_more(e, g) for e, g in pairs}
    if len(inserted) == 1 and "" not in inserted:
        yield f"has {inserted.pop()!r} too much", 9
    missing = {_more(g, e) for e, g in pairs}
    if len(missing) == 1 and "" not in missing:
        yield f"lacks {missing.pop()!r}", 9
    if len(pairs) > 1 and all(g and e.startswith(g) for e, g in pairs):
        yield "is the beginning of the right text", 12
    if len(pairs) > 1 and all(g and e.endswith(g) for e, g in pairs):
        yield "is the end of the right text", 12
    if len(pairs) > 1 and all(e and g.startswith(e) for e, g in pairs):
        yield "goes on after the right text", 12


def _more(less: str, more: str) -> str:
    """What the longer of two texts has in one piece, if that is all; "" otherwise."""
    n = len(more) - len(less)
    if n <= 0:
        return ""
    start = next((i for i, (a, b) in enumerate(zip(less, more)) if a != b), len(less))
    return more[start : start + n] if more[:start] + more[start + n :] == less else ""


def _at(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        value = value[key]
    return value


def _neighbours(expected: Any, wrong: Sequence[Leaf]) -> Iterator[tuple[str, float]]:
    """Whether each wrong value is the right one of another place: beside it, or in the part before or after."""
    beside: set[Any] | None = None
    for leaf in wrong:
        parent = _at(expected, leaf.path[:-1])
        keys = parent if isinstance(parent, dict) else range(len(parent))
        here = {key for key in keys if key != leaf.path[-1] and equal(parent[key], leaf.mine)}
        beside = here if beside is None else beside & here
    if beside and len(beside) == 1:
        yield f"has the right value of {_step(next(iter(beside)))}", 11
    for step, words in ((-1, "before"), (1, "after")):
        if all(_same_as_part(expected, leaf, step) for leaf in wrong):
            yield f"has the right value of the part {words}", 12


def _same_as_part(expected: Any, leaf: Leaf, step: int) -> bool:
    """Whether a wrong value is the right one at the same place of the part before or after."""
    if len(leaf.path) < 2:
        return False
    keys = list(expected) if isinstance(expected, dict) else list(range(len(expected)))
    at = keys.index(leaf.path[0]) + step
    if not 0 <= at < len(keys):
        return False
    try:
        return equal(_at(expected[keys[at]], leaf.path[1:]), leaf.mine)
    except (KeyError, IndexError, TypeError):
        return False


def _taken(expected: Any, got: Any, wrong: Sequence[Leaf]) -> Iterator[Seen]:
    """A flat dict in which several wrong values are the right ones of exactly one other key each."""
    if not isinstance(expected, dict) or len(wrong) < 3 or any(len(leaf.path) > 1 for leaf in wrong):
        return
    found = []
    for leaf in wrong:
        others = [key for key in expected if key != leaf.path[0] and equal(expected[key], leaf.mine)]
        if len(others) == 1:
            found.append(f"{short(leaf.path[0])} has that of {short(others[0])}")
    if len(found) < 3:
        return
    text = f"values stand under other keys: {', '.join(found[:4])}{' and so on' if len(found) > 4 else ''}"
    yield Seen("values under other keys", text, "Compare the order of the keys with that of the values.", 8.5)
