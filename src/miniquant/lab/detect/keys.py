"""Results that are dicts or tuples of the same parts in every case: what each wrong part shows, over all cases."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..compare import equal, short
from ..verdict import Call, Facts
from .chance import DIFFERENT
from .formulas import scalar
from .seen import VAGUE, Seen, most_common, one_of

FEW = 8  # parts of a result
BY_HOW_MUCH = re.compile(r"\b(too (large|small) by|times)\b")
LISTED = 3  # wrong parts that are described

OfPair = Callable[..., Iterator[Seen]]


def key_by_key(facts: Facts, calls: Sequence[Call], of_pair: OfPair) -> Seen | None:
    """One sentence on each wrong part, where every result has the same parts; ``None`` if none has a pattern."""
    calls = [call for call in calls if not _is_right(facts, call)]  # of these, only an argument is changed
    tables = [_parts(call) for call in calls]
    keys = list(tables[0]) if tables else []
    if not 1 < len(keys) <= FEW or any(list(table) != keys for table in tables) or len(calls) < 2:
        return None
    sentences = []
    rank, unknown, everywhere = 0.0, 0, True
    for key in keys:
        pairs = [(call, *table[key]) for call, table in zip(calls, tables)]
        spec = facts.spec
        wrong = [(c, e, g) for c, e, g in pairs if not equal(e, g, spec.tolerance, ordered=spec.ordered)]
        if not wrong:
            continue
        alike = {(repr(e), repr(g)): (call, e, g) for call, e, g in wrong}  # a pair that comes twice is one proof
        pairs_seen = [set(of_pair(facts, call, e, g, 1, key)) for call, e, g in alike.values()]
        seen, places = most_common(pairs_seen)
        where = (
            ""
            if len(wrong) == len(calls)
            else f" (it is wrong in {len(wrong)} of {len(calls)} wrong results, with those of further inputs)"
        )
        phrases = spec.observe is not None and seen is not None and "stands in place of" in seen.text  # of the check
        few = phrases or (
            len(alike) < DIFFERENT and seen is not None and bool(BY_HOW_MUCH.search(seen.text))
        )  # of one or two: chance
        if seen is None or seen.rank >= VAGUE or few or len(places) < len(alike):
            unknown += 1
            seen = Seen("", _unlike([(e, g) for _, e, g in wrong]))
        else:
            rank = max(rank, seen.rank)
            if seen.text == "the result is empty":  # the result is that of the other keys, too
                seen = Seen("", "it is empty")
        everywhere = everywhere and not where
        sentences.append((f"item {key}" if isinstance(key, int) else short(key), seen.text + where))
    if not 0 < len(sentences) <= LISTED or unknown == len(sentences):
        return None
    text = "; ".join(f"at {key}, {said}" for key, said in sentences)
    names = " and ".join(key for key, _ in sentences)
    if len(sentences) == 1:
        subject = "" if names.startswith("item") else "the value of "
        said = sentences[0][1]
        text = f"only {subject}{names} is wrong: {said}"
        if said.split()[:2] == ["the", "result"]:
            text = f"only {subject}{names} is wrong; here it is called the result: {said}"
    elif len(sentences) < len(keys):
        text = f"only the values of {names} are wrong: {text}"
    if not everywhere:  # on how many cases follows
        text += "; at least one of these"
    title = f"the value of {names}" if len(sentences) == 1 else "key by key"
    return Seen(title, text, "", rank + 0.5 + 5 * unknown)


def _unlike(pairs: Sequence[tuple[Any, Any]]) -> str:
    """What is said of wrong parts that have nothing else in common."""
    dtypes = {(getattr(e, "dtype", None), getattr(g, "dtype", None)) for e, g in pairs}
    if len(dtypes) == 1:
        ((wanted, found),) = dtypes
        if wanted != found and wanted is not None and found is not None:
            return f"the dtype is {found} in place of {wanted}"
    return "the value is wrong" if all(type(e) is type(g) for e, g in pairs) else "something else stands there"


def _is_right(facts: Facts, call: Call) -> bool:
    same = equal(call.expected.result, call.outcome.result, facts.spec.tolerance, ordered=facts.spec.ordered)
    return same and bool(call.outcome.change or call.outcome.view)


def _parts(call: Call) -> dict[Any, tuple[Any, Any]]:
    """The parts of a result and the right ones, by key; nothing if the keys differ."""
    e, g = call.expected.result, call.outcome.result
    if isinstance(e, dict) and isinstance(g, dict) and e.keys() == g.keys():
        return {key: (e[key], g[key]) for key in sorted(e, key=repr)}
    if isinstance(e, tuple) and isinstance(g, tuple) and len(e) == len(g):
        return {place: (a, b) for place, (a, b) in enumerate(zip(e, g))}
    return {}


def of_moved(expected: Any, got: Any, tolerance: float) -> Iterator[Seen]:
    """Two numbers in a dict of numbers: what one has too much, the other has too little."""
    if not isinstance(expected, dict) or not isinstance(got, dict) or expected.keys() != got.keys():
        return
    if not all(scalar(x) is not None for table in (expected, got) for x in table.values()):
        return
    wrong = [key for key in expected if not equal(expected[key], got[key], tolerance)]
    less, more = sorted(wrong, key=lambda key: got[key] - expected[key]) if len(wrong) == 2 else ("", "")
    if wrong and less != more and _is_moved(expected[less] - got[less], got[more] - expected[more]):
        text = f"what is missing at {short(less)} stands at {short(more)}, and the sum is right"
        yield Seen("under the wrong key", text, "Look at what belongs under each key.", 14)


def _is_moved(lost: Any, found: Any) -> bool:
    """Whether two numbers are the same; integers exactly."""
    return bool(lost == found if isinstance(lost, int) and isinstance(found, int) else math.isclose(lost, found))


def of_named(quantities: dict[str, Any], expected: Any, got: Any) -> Iterator[Seen]:
    """What a lesson names by the keys of a dict or the items of a list: other values, items with a property."""
    tables = {words: table for words, table in quantities.items() if isinstance(table, dict)}
    if isinstance(expected, dict) and isinstance(got, dict):
        wrong = [key for key in expected if key in got and not equal(expected[key], got[key])]
        for words, table in tables.items():
            zeros = all(scalar(got[key]) == 0 for key in wrong)  # which many things are that are not there
            if wrong and not zeros and all(key in table and _alike(table[key], got[key]) for key in wrong):
                yield Seen("another thing", f"every wrong value is {words}", "Compare it with the docstring.", 11)
    elif isinstance(expected, list) and isinstance(got, list):
        missing, extra = [x for x in expected if x not in got], [x for x in got if x not in expected]
        for words, table in tables.items():
            having = [key for key, has in table.items() if has is True]
            if missing and not extra and missing == [x for x in expected if x in having]:
                yield Seen("items missing", f"exactly {words} are missing", "Ask for them as well.", 8)
            if extra and not missing and sorted(extra) == sorted(x for x in having if x not in expected):
                yield Seen("too many items", f"exactly {words} do not belong there", "Leave them out.", 8)
            if missing and extra and set(missing) | set(extra) == set(having):
                yield Seen("wrong items", f"exactly {words} are wrong", "Look at your condition for them.", 9)


def _alike(a: Any, b: Any) -> bool:
    one, two = scalar(a), scalar(b)
    return one == two if one is not None and two is not None else equal(a, b)


def of_key_names(expected: Any, got: Any, tolerance: float) -> Iterator[Seen]:
    """Dotted keys such as ``layers.0.bias``: which parts of a name all wrong, missing or extra keys share."""
    if not isinstance(expected, dict) or not isinstance(got, dict):
        return
    if not all(type(key) is str for key in (*expected, *got)) or not any("." in key for key in expected):
        return
    missing, extra = [k for k in expected if k not in got], [k for k in got if k not in expected]
    wrong = [k for k in expected if k in got and not equal(expected[k], got[k], tolerance)]
    if wrong and (words := _shared(wrong, [k for k in expected if k in got])):
        rest = "" if missing or extra else ", and the others are right"
        yield Seen("some keys", f"the values are wrong at exactly the keys {words}{rest}", "", 6)
    if missing and not extra and (words := _shared(missing, list(expected))):
        moved = [k for k in expected if k in got] != list(got)
        rest = "" if wrong or moved else ", and the rest is right"
        yield Seen("keys are missing", f"exactly the keys {words} are missing{rest}", "", 8.5)
    if len(missing) == len(extra) and missing:
        yield from _renamed(missing, extra)


def _shared(chosen: list[str], every: list[str]) -> str:
    """``that end with 'bias'``: what only these keys have; "" if nothing short is known."""
    others = [key for key in every if key not in chosen]
    if not others:
        return ""
    for part in dict.fromkeys(part for key in chosen for part in key.split(".")):
        if all(part in key.split(".") for key in chosen) and not any(part in key.split(".") for key in others):
            return f"with the part {part!r}"
    for length in (2, 3):
        ends = sorted({".".join(key.split(".")[-length:]) for key in chosen})  # so that each case says the same
        if len(ends) <= 4 and not any(key.endswith(end) for key in others for end in ends):
            return f"that end with {one_of(ends)}"
    return ""


def _unfilled(key: str) -> str:
    """A dotted name with its numbers without zeros in front."""
    return ".".join(str(int(part)) if part.isdecimal() else part for part in key.split("."))


def _renamed(missing: list[str], extra: list[str]) -> Iterator[Seen]:
    """One part of every name that is written in another way, left out or added."""
    changes = set()
    for one, two in zip(sorted(missing), sorted(extra)):
        a, b = one.split("."), two.split(".")
        while a and b and a[0] == b[0]:
            a, b = a[1:], b[1:]
        while a and b and a[-1] == b[-1]:
            a, b = a[:-1], b[:-1]
        changes.add((".".join(a), ".".join(b)))
    if sorted(map(_unfilled, missing)) == sorted(map(_unfilled, extra)):
        text = "the numbers in the keys have zeros in front where none are expected, or the other way round"
        yield Seen("other keys", text, "", 6.9)
    if len(changes) == 1:
        ((old, new),) = changes
        if old and new:
            yield Seen("other keys", f"the keys that differ have {new!r} where {old!r} is expected", "", 7)
        elif old or new:
            how = f"with {new!r} added" if new else f"without {old!r}"  # another key may have it, and be right
            text = f"the keys that are not expected are those that are missing, {how}"
            yield Seen("other keys", text, "", 7)
    elif len(changes) <= 4 and all(old and not new for old, new in changes):
        listed = " or ".join(repr(old) for old, _ in sorted(changes))
        yield Seen("other keys", f"a part of the keys is missing: {listed}", "", 7.5)
