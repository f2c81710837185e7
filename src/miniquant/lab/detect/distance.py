"""What is said of wrong results that have no pattern: how far off they are, and on which side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..compare import difference, equal, short
from ..spec import Exercise
from ..verdict import Call, Facts, distinct, shown_first, size_of
from .fields import is_plural, kind_of
from .numbers import array_of, settled
from .profile import profile
from .seen import Seen, number

Pair = tuple[np.ndarray, np.ndarray]
SHARES = (0.01, 0.05, 0.1)  # of the right number
FEWEST = 3  # numbers of which a property is said
CONFIRMED = 12  # numbers that show it, with those of further inputs
PARTS = 6  # of a result that are named
EXAMPLES, SHORT = 3, 40  # results that are shown, and the characters of one
LONGEST = 150  # characters of two types
SIMPLE = (str, bytes, int)  # whose texts are compared, which is fast


class Kind(str):
    """The name of a kind of field."""


def how_far_off(facts: Facts, calls: Sequence[Call]) -> Seen:
    """Where the wrong results have nothing in common that is known: how many of their values are wrong."""
    if all(isinstance(x, list) for call in calls for x in (call.expected.result, call.outcome.result)):
        found = _missing_and_extra(facts, calls)
        return replace(found, text=found.text + profile(calls, facts.spec.tolerance) * (found.rank > 90))
    ordered = facts.spec.ordered
    first = [difference(c.expected.result, c.outcome.result, facts.spec.tolerance, ordered=ordered) for c in calls]
    kinds = Counter(
        (found.got, found.expected, found.what.split(";")[0].split()[-2] + " of a part" * bool(found.path))
        for found in first
        if found and found.what.split(";")[0].endswith(("type differs", "the shape differs"))
    )
    if kinds:
        ((got, expected, word), n), *_ = kinds.most_common()
        same = [_same_values(call) for call in calls]
        right = "the values are right, and" if all(same) else "the results are not the right ones;"
        alike = sum(count for (_, _, other), count in kinds.items() if other == word)
        least = "" if alike == len(calls) else "at least "
        text = f"{right} on {least}{alike} of {len(calls)} the {word} differs"
        more = f": {got} in place of {expected}" if len(got) + len(expected) < LONGEST else ""
        if more and n < alike:  # of several parts that differ only the first one was looked at
            more += f" on at least {n} of them" if word.endswith(" of a part") else f" on {n} of them"
        return Seen("wrong results", text + more, rank=99)
    pairs = [_pair(call, facts.spec.tolerance) for call in calls]
    known = [pair for pair in pairs if pair is not None]
    if len(known) < len(calls) or not all(np.isfinite(x).all() for pair in known for x in pair):
        which = _finding_off(calls) or _parts_off(facts, calls) or _examples(calls)
        which += profile(calls, facts.spec.tolerance)
        what = _type_right(calls, "of the results ")
        what = f"{what}what is in them is not right" if what else "the results are not the right ones"
        return Seen("wrong results", what + which, rank=99)
    far = number(max(map(_farthest, calls, known)))
    every = distinct((*facts.calls, *facts.further, *facts.fresh, *facts.changed))
    others = [call for call in every if call.number >= len(facts.calls) and call.comparable and call.problem]
    said = _traits(known, [pair for call in others if (pair := _pair(call, facts.spec.tolerance)) is not None])
    if all(e.size == 1 for e, _ in known):
        text = f"{_type_right(calls)}the numbers are off by up to {far}{said}{_examples(calls)}"
        return Seen("wrong numbers", text, rank=98)
    counts = [(int((e != g).sum()), e.size) for e, g in known]
    n, of = max(counts, key=lambda count: count[0] / max(1, count[1]))  # the largest share
    if all((e != g).all() for e, g in known):
        text = f"type and shape are right, and all values are off, by up to {far}{said}"
        return Seen("wrong values", text, rank=98)
    if n == of:
        many = "in some results all are wrong, in others not"
    elif len({size for _, size in counts}) == 1:
        many = f"at most {n} of {of} in a result are wrong"
    else:
        many = f"at most {math.ceil(1000 * n / of) / 10:g} % of the values of a result are wrong"
    text = f"type and shape are right, and values are off by up to {far}; {many}"
    return Seen("wrong values", text + said, rank=98)


def _same_values(call: Call) -> bool:
    """Whether both results hold the same numbers, of whatever type."""
    e, g = array_of(call.expected.result), array_of(call.outcome.result)
    if e is None or g is None or e.shape != g.shape:
        return False
    pairs = zip(e.reshape(-1).tolist(), g.reshape(-1).tolist())  # a number of Python is compared exactly
    return all(a == b or (a != a and b != b) for a, b in pairs)


def _type_right(calls: Sequence[Call], of: str = "") -> str:
    """``the type is right, and ``, if it is so in all results."""
    same = all(type(call.expected.result) is type(call.outcome.result) for call in calls)
    return f"the type {of}is right, and " if same else ""


def _finding_off(calls: Sequence[Call]) -> str:
    """The first text that is wrong in the dict of the smallest case: what a check found, and what it wants."""
    call = shown_first(calls)
    e, g = call.expected.result, call.outcome.result
    if not isinstance(e, dict) or not isinstance(g, dict) or e.keys() != g.keys():
        return ""
    texts = [(key, e[key], g[key]) for key in e if isinstance(e[key], str) and isinstance(g[key], str)]
    return next(
        (
            f" (in the smallest case, {key}: {found} in place of {wanted})"
            for key, wanted, found in texts
            if wanted != found
        ),
        "",
    )


def _parts_off(facts: Facts, calls: Sequence[Call]) -> str:
    """Which keys of a dict, items of a tuple or fields of bytes are wrong in at least one of the results."""
    wrong: Counter[Any] = Counter()
    for call in calls:
        e, g = call.expected.result, call.outcome.result
        if isinstance(e, bytes) and isinstance(g, bytes) and len(e) == len(g) and facts.spec.fields:
            fields = facts.spec.fields(*call.case) or []
            wrong.update(list(dict.fromkeys(Kind(kind_of(name)) for name, a, b in fields if e[a:b] != g[a:b])))
            continue
        if isinstance(e, dict) and isinstance(g, dict) and e.keys() == g.keys():
            keys = list(e)
        elif isinstance(e, tuple) and isinstance(g, tuple) and len(e) == len(g):
            keys = list(range(len(e)))
        else:
            return ""
        same = {key: equal(e[key], g[key], facts.spec.tolerance, ordered=facts.spec.ordered) for key in keys}
        wrong.update(key for key in keys if not same[key])
    if not 0 < len(wrong) <= PARTS:
        return ""
    some = {key: key.replace(" of each ", " of a ") for key in wrong if isinstance(key, Kind)}  # others may be right
    place = "key" if isinstance(calls[0].expected.result, dict) else "item"
    names = [f"{place} {key}" if isinstance(key, int) else some.get(key) or short(key) for key in wrong]
    plural = [key in some and is_plural(key) for key in wrong]
    verbs = ["are" if many else "is" for many in plural]
    if len(calls) == 1:
        said = [f"{name} {verb} wrong" for name, verb in zip(names, verbs)]
    else:
        said = [f"{name} {verb} wrong on {n}" for name, verb, n in zip(names, verbs, wrong.values())]
    within = [_positions(calls, key, facts.spec.tolerance) for key in wrong]
    each = ", ".join(map("".join, zip(said, within)))
    return f": of {len(calls)} results, {each}" if len(calls) > 1 else f": {each}"


def _has(result: Any, key: Any) -> bool:
    return key in result if isinstance(result, dict) else key < len(result)


def _positions(calls: Sequence[Call], key: Any, tolerance: float) -> str:
    """Where the wrong values of a part lie, if it is as wide in every result and they lie in one piece of it."""
    if isinstance(key, Kind) or not all(_has(call.expected.result, key) for call in calls):
        return ""
    pairs = [tuple(array_of(x.result[key]) for x in (call.expected, call.outcome)) for call in calls]
    known = [
        (e, settled(e, g, tolerance))
        for e, g in pairs
        if e is not None and g is not None and e.ndim and e.shape == g.shape
    ]
    widths = {e.shape[-1] for e, _ in known}
    if len(known) < len(pairs) or len(known) < FEWEST or len(widths) != 1:
        return ""
    (width,) = widths
    differ = [(e != g) & ~((e != e) & (g != g)) for e, g in known]
    wrong = np.logical_or.reduce([places.reshape(-1, width).any(axis=0) for places in differ])
    (at,) = np.nonzero(wrong)
    if not 0 < len(at) < width or at[-1] - at[0] + 1 != len(at):
        return ""
    which = f"place {at[0]}" if len(at) == 1 else f"places {at[0]} to {at[-1]}"
    return f" (only {which} of its {width}, counted from 0)"


def _examples(calls: Sequence[Call]) -> str:
    """Up to three wrong results and the right ones, of the smallest cases: all of them, or some."""
    chosen = sorted(calls, key=lambda call: (size_of(call.case), call.number))
    pairs = dict.fromkeys((short(call.outcome.result), short(call.expected.result)) for call in chosen)
    listed = [f"{g} in place of {e}" for g, e in pairs if max(len(g), len(e)) <= SHORT and g != e][:EXAMPLES]
    if not listed:
        return ""
    return f": {'' if len(listed) == len(pairs) else 'for example, '}{', '.join(listed)}"


def _farthest(call: Call, pair: Pair) -> float:
    """The largest difference; of integers that no float holds, the exact one."""
    e, g = array_of(call.expected.result), array_of(call.outcome.result)
    if e is not None and g is not None and _are_whole(e, g):
        return float(max(abs(b - a) for a, b in zip(e.reshape(-1).tolist(), g.reshape(-1).tolist())))
    return float(np.abs(pair[1] - pair[0]).max())


def _are_whole(e: np.ndarray, g: np.ndarray) -> bool:
    return e.dtype.kind in "iuO" and g.dtype.kind in "iuO"


def _pair(call: Call, tolerance: float) -> Pair | None:
    """Both results as floats of one shape, with what is right within the tolerance made equal."""
    if isinstance(call.expected.result, dict | bytes):
        return None  # values of a dict are compared by their keys, and their order does not matter
    e, g = array_of(call.expected.result), array_of(call.outcome.result)
    if e is None or g is None or e.shape != g.shape:
        return None
    with np.errstate(all="ignore"):
        one, two = e.astype(float), settled(e.astype(float), g.astype(float), tolerance)
        if _are_whole(e, g):  # large integers can be equal as floats: then the next float stands for the wrong one
            more, less = (e < g) & (one == two), (e > g) & (one == two)
            two = np.where(more, np.nextafter(two, np.inf), np.where(less, np.nextafter(two, -np.inf), two))
        return one, two


def _traits(pairs: Sequence[Pair], beyond: Sequence[Pair]) -> str:
    """What holds for every wrong number of all pairs, and of those beyond the cases: its side, sign, power of two."""
    here, (e, g) = _wrong(pairs), _wrong([*pairs, *beyond])
    n = e.size
    if n < 2 or not (np.isfinite(e).all() and np.isfinite(g).all()):
        return ""
    few = here[0].size < FEWEST or n < CONFIRMED
    found = [words for words, holds in (_SIDES if few else _TESTS) if holds(e, g)]
    shares = [s for s in SHARES if not few and (np.abs(g - e) <= s * np.abs(e)).all()]
    found += [f"is off by at most {number(100 * share)} % of the right one" for share in shares]
    if not found:
        told = [words for words, holds in _SIDES if n > here[0].size >= CONFIRMED // 2 and holds(*here)]
        return f"; in the cases, each of the {here[0].size} wrong ones {told[0]}" if told else ""
    if n > here[0].size:
        return f"; with those of further inputs, each of the {n} wrong ones {found[0]}"
    return f"; each of the {n} wrong ones {found[0]}"


def _wrong(pairs: Sequence[Pair]) -> Pair:
    """The wrong numbers of all pairs, each beside the right one."""
    both = [(e, g, (e != g) & ~((e != e) & (g != g))) for e, g in pairs]
    return np.concatenate([e[off] for e, _, off in both]), np.concatenate([g[off] for _, g, off in both])


def _exponents(e: np.ndarray, g: np.ndarray) -> bool:
    same = (np.frexp(np.abs(e))[1] == np.frexp(np.abs(g))[1]) & (np.sign(e) == np.sign(g))
    return bool(same.all() and (e != np.rint(e)).any())


_SIDES: tuple[tuple[str, Callable[[np.ndarray, np.ndarray], bool]], ...] = (
    ("is 0", lambda e, g: not g.any()),
    ("is too large", lambda e, g: bool((g > e).all())),
    ("is too small", lambda e, g: bool((g < e).all())),
    ("is too far from 0", lambda e, g: bool((np.abs(g) > np.abs(e)).all())),
    ("is too close to 0", lambda e, g: bool((np.abs(g) < np.abs(e)).all())),
)
_TESTS: tuple[tuple[str, Callable[[np.ndarray, np.ndarray], bool]], ...] = (
    ("has the right sign, and lies between the same two powers of two as the right one", _exponents),
    *_SIDES,
)


def _lacks(items: list[Any], others: list[Any], spec: Exercise) -> bool:
    """Whether one of the others is less often in a list; a number within the tolerance is the same."""
    mine, texts = _sorted_out(items, Counter(repr(x) for x in others if isinstance(x, SIMPLE)))
    theirs, _ = _sorted_out(others, texts)
    for x in theirs:
        same = (i for i, y in enumerate(mine) if equal(x, y, spec.tolerance, ordered=spec.ordered))
        if (at := next(same, None)) is None:
            return True
        del mine[at]
    return False


def _sorted_out(items: list[Any], texts: Counter[str]) -> tuple[list[Any], Counter[str]]:
    """The items without those whose texts are counted, and the texts of these."""
    left, found = [], Counter[str]()
    for x in items:
        text = repr(x) if isinstance(x, SIMPLE) else ""
        if found[text] < texts[text]:
            found[text] += 1
        else:
            left.append(x)
    return left, found


def _missing_and_extra(facts: Facts, calls: Sequence[Call]) -> Seen:
    """Lists that have nothing in common but that items are missing or too many."""
    missing = extra = 0
    for call in calls:
        e, g = call.expected.result, call.outcome.result
        missing += _lacks(g, e, facts.spec)
        extra += _lacks(e, g, facts.spec)
    n = len(calls)
    if not extra and not missing:
        text = "the right items are there, in another order"
        return Seen("another order", text, "Compare item by item.", 60)
    if not extra and missing == n:
        return Seen(
            "items missing", "what is there belongs there, and items are missing", "Look at what is left out.", 60
        )
    if not missing and extra == n:
        return Seen("too many items", "the right items are there, and others that do not belong there", "", 60)
    counts = f"items are missing on {missing} and items do not belong there on {extra} of the {n} wrong results"
    return Seen("other items", "items have other values" if missing == extra == n else counts, rank=98)
