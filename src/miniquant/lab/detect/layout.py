"""How wrong bytes and dicts are related to the right ones: fields and keys that are wrong, missing or exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ..compare import Fields, equal, short
from .fields import alignment, is_plural
from .parts import all_the_same, same_items
from .seen import Seen


def _field(name: str) -> str:
    """``the field version``; a name that has its own article stays as it is."""
    return name if name.startswith("the ") else f"the field {name}"


def _verb(name: str) -> str:
    return "are" if name.startswith("the ") and is_plural(name) else "is"


def of_bytes(expected: Any, got: Any, fields: Fields | None) -> Iterator[Seen]:
    """Bytes by their fields: which field is wrong, missing, turned around or zero."""
    if not isinstance(expected, bytes) or not isinstance(got, bytes) or expected == got:
        return
    if fields and len(expected) == len(got):
        inside = [(n, a, min(b, len(expected))) for n, a, b in fields if a < len(expected)]
        wrong = [(n, a, b) for n, a, b in inside if expected[a:b] != got[a:b]]
        turned = b"".join(expected[a:b][::-1] if expected[a:b] != got[a:b] else expected[a:b] for _, a, b in inside)
        if turned == got and wrong and inside[-1][2] == len(expected):
            yield Seen(
                "bytes in reversed order",
                "the fields that differ have their bytes in reversed order",
                'Say `"<"` or `"little"`: the byte with the smallest place value comes first.',
                8,
            )
        names = sorted({n for n, _, _ in wrong})
        if len(names) == 1 and len(inside) > 1:
            if all(not any(got[a:b]) for _, a, b in wrong):
                yield Seen(f"{names[0]} is 0", f"only {_field(names[0])} is wrong: it is 0", "", 9)
            yield Seen(
                _field(names[0]),
                f"only {_field(names[0])} {_verb(names[0])} wrong",
                "Work this field by hand for the smallest case.",
                26,
            )
        if 1 < len(names) < min(4, len({n for n, _, _ in inside})):
            listed = " and ".join(names)
            yield Seen(
                "some fields",
                f"the fields {listed} are wrong, and the others are right",
                "Work these fields by hand for the smallest case.",
                30,
            )
        for (one, a, b), (two, c, d) in pairwise(wrong):
            if b - a == d - c and expected[a:b] == got[c:d] and expected[c:d] == got[a:b] and len(wrong) == 2:
                yield Seen(
                    "fields exchanged",
                    f"the fields {one} and {two} are exchanged",
                    "Write them in the order of the docstring.",
                    7,
                )
    if fields and len(got) < len(expected):
        low, high = alignment(expected, got) or (0, 1)
        for name, a, b in fields:
            if expected[:a] + expected[b:] == got and low == high:  # else another part may be missing as well
                yield Seen(
                    f"{name} is missing",
                    f"the field {name} is missing, and the rest is right",
                    "Write this field as well.",
                    7,
                )
    if len(expected) == len(got) and not any(got) and any(expected):
        yield Seen("all zeros", "every byte is 0", "`bytes(n)` makes n zero bytes; use `to_bytes` or `struct.pack`.", 7)
    if got.hex() == expected.hex()[::-1] and len(got) > 1:
        yield Seen("digits reversed", "the hexadecimal digits are in reversed order", "Reverse bytes, not digits.", 9)
    if got == expected.hex().encode() or got == str(expected).encode():
        yield Seen("written as text", "the bytes were written as text", "Return the bytes themselves.", 7)
    if len(expected) == len(got):
        numbers_e, numbers_g = (np.frombuffer(x, np.uint8) for x in (expected, got))
        differs = numbers_e != numbers_g
        if len(shown := {(int(a), int(b)) for a, b in zip(numbers_e[differs], numbers_g[differs])}) == 1:
            ((right, mine),) = shown
            if {right, mine} == {0, 0x80}:
                yield Seen(
                    "the sign of a zero",
                    f"only bytes that must be {right:02x} are wrong, and each wrong one is {mine:02x}",
                    "-0.0 and 0.0 are equal as numbers, and their bytes differ.",
                    6,
                )
        if ((numbers_e >> 4 | (numbers_e & 15) << 4) == numbers_g)[differs].all() and differs.sum() > 1:
            yield Seen(
                "nibbles swapped",
                "the bytes that differ have their two nibbles exchanged",
                "The low nibble is `& 15`, the high one `>> 4`.",
                9,
            )
        if ((numbers_e ^ 0x80) == numbers_g)[differs].all():
            yield Seen(
                "the highest bit",
                "the bytes that differ have only their highest bit wrong",
                "Look at signs and at an offset of 128.",
                14,
            )
        near = np.abs(numbers_e.astype(int) - numbers_g.astype(int))
        if (np.minimum(near, 256 - near) <= 1).all():
            yield Seen(
                "off by one",
                "the bytes that differ are off by exactly 1"
                + ", counted so that 00 follows ff" * bool((near == 255).any()),
                "Compare how you round with what the docstring asks.",
                22,
            )
        first = int(np.flatnonzero(differs)[0])
        if first and differs[first:].mean() > 0.5:
            yield Seen(
                "wrong from some place on", "the first bytes are right, and after some place most are wrong", "", 42
            )


def of_dicts(expected: Any, got: Any, tolerance: float = 0.0) -> Iterator[Seen]:
    """Dicts: keys that are missing or too many, values under the wrong key."""
    if not isinstance(expected, dict) or not isinstance(got, dict):
        return
    yield from all_the_same(list(expected.values()), list(got.values()))
    missing, extra = [k for k in expected if k not in got], [k for k in got if k not in expected]
    shared = [k for k in expected if k in got]
    wrong = [k for k in shared if not equal(expected[k], got[k], tolerance)]
    if missing or extra:
        rest = "" if wrong or not shared else ", and the other values are right"
        parts = [f"missing: {_few(missing)}"] * bool(missing)
        parts += [f"not expected: {_few(extra)}"] * bool(extra)
        yield Seen("other keys", f"keys are {' and '.join(parts)}{rest}", "Compare the keys with the docstring.", 9)
        words = "missing" if not extra else "too many" if not missing else "wrong"
        yield Seen(f"keys are {words}", f"keys are {words}{rest}", "Compare the keys with the docstring.", 14)
        if not got:
            yield Seen("nothing in it", "the result is empty", "", 8)
        if missing and not wrong and not extra and list(expected)[: len(shared)] == shared:
            if len(shared) == 1 and len(missing) > 1:
                yield Seen(
                    "only the first",
                    "only the first key is there",
                    "Does a `return` stand inside the loop? It ends the loop at once.",
                    8,
                )
            elif len(missing) == 1 and list(got) == shared:
                yield Seen(
                    "the last key is missing",
                    "the last key is missing, and the rest is right",
                    "Look at where the loop ends.",
                    9,
                )
        if [str(k) for k in expected] == [str(k) for k in got]:
            yield Seen("keys of another type", "the keys read right, and have another type", "", 7)
    elif not wrong and list(expected) != list(got):
        yield from _of_order(list(expected), list(got))
        yield Seen(
            "another order",
            "all keys and values are right, in another order",
            "Insert the keys in the order of the docstring.",
            8,
        )
    elif len(wrong) == 2 and equal(expected[wrong[0]], got[wrong[1]]) and equal(expected[wrong[1]], got[wrong[0]]):
        yield Seen("values exchanged", f"the values of {short(wrong[0])} and {short(wrong[1])} are exchanged", "", 7)
    elif wrong and same_items([expected[k] for k in shared], [got[k] for k in shared]):
        yield Seen(
            "values under other keys",
            "the right values are there, under other keys",
            "Look at how keys and values are paired.",
            9,
        )
    if wrong and not missing and not extra and len(wrong) < len(shared):
        names = ", ".join(map(short, wrong[:4])) + (f" and {len(wrong) - 4} more" if len(wrong) > 4 else "")
        verb = "value of {} is" if len(wrong) == 1 else "values of {} are"
        yield Seen(f"the values of {names}", f"only the {verb.format(names)} wrong", "", 22)
        if wrong == shared[-1:]:
            yield Seen("the last value", "only the value of the last key is wrong", "Look at where the loop ends.", 24)
        elif wrong == shared[:1]:
            yield Seen(
                "the first value", "only the value of the first key is wrong", "Look at where the loop begins.", 24
            )
        elif wrong == shared[1:]:
            yield Seen(
                "all values but the first",
                "only the value of the first key is right",
                "Look at what changes from one step to the next.",
                24,
            )
    if wrong and len(wrong) == len(shared) > 1 and len({repr(value) for value in got.values()}) == 1:
        yield Seen(
            "the same value for all", "every key has the same value", "Is a value computed once, before the loop?", 10
        )


def _few(keys: list[Any]) -> str:
    """The first three keys, and how many there are beyond them."""
    return ", ".join(map(short, keys[:3])) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")


def _of_order(e: list[Any], g: list[Any]) -> Iterator[Seen]:
    """Right keys in another order: sorted, reversed, or all but one in the right one."""
    cure = "Insert the keys in the order of the docstring."
    if g == e[::-1]:
        yield Seen("reversed", "all keys and values are right, in reversed order", cure, 7)
    if g == sorted(e, key=str):
        yield Seen("sorted", "all keys and values are right, in alphabetical order", cure, 7.2)
    if len(e) < 3:
        return
    for key in e:
        if [k for k in e if k != key] == [k for k in g if k != key]:
            early = "too early" if g.index(key) < e.index(key) else "too late"
            place = "first" if g[0] == key else "last" if g[-1] == key else early
            text = f"all keys and values are right, and {short(key)} comes {place}"
            yield Seen("one key in the wrong place", text, cure, 7.4)
