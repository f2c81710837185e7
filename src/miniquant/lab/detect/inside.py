"""What is wrong inside bytes and arrays that hold several kinds of numbers: scales and values, low and high nibbles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..compare import Fields, equal
from ..verdict import Call, Facts
from .fields import is_plural, kind_of
from .formulas import quantities_of
from .numbers import of_numbers
from .places import of_places
from .quantized import of_quantized
from .seen import VAGUE, Seen

Parts = Mapping[str, Any]
MOST = 3  # kinds of numbers that are wrong, of which each is spoken of


def parts_of(facts: Facts, call: Call, result: Any) -> Parts:
    """The kinds of numbers in a result, by the words for them; nothing if the result has another layout."""
    spec = facts.spec
    if spec.parts:
        try:
            return spec.parts(result, *call.case)
        except Exception:
            if result is call.expected.result:
                raise
            return {}  # a student's result may have any layout
    fields = spec.fields(*call.case) if spec.fields else None
    if fields and isinstance(result, bytes) and len(result) == len(call.expected.result):
        return _of_fields(result, fields)
    return {}


def _of_fields(data: bytes, fields: Fields) -> Parts:
    """The fields of bytes by their kinds: the same field of each record is one kind."""
    kinds: dict[str, list[bytes]] = {}
    for name, start, stop in fields:
        if start < len(data):
            kinds.setdefault(kind_of(name), []).append(data[start:stop])
    return {name: _numbers(name, pieces) for name, pieces in kinds.items()}


def _numbers(name: str, pieces: list[bytes]) -> Any:
    if is_plural(name) and len(pieces[0]) > 4:  # eight nibbles' bytes are no number
        return b"".join(pieces)
    if {len(piece) for piece in pieces} <= {1, 2, 4, 8} and len({len(piece) for piece in pieces}) == 1:
        return [int.from_bytes(piece, "little") for piece in pieces]
    return b"".join(pieces)


def of_inside(facts: Facts, call: Call, expected: Any, got: Any, sizes: Mapping[str, int]) -> Iterator[Seen]:
    """Which kinds of numbers are wrong in a result, and how."""
    pe, pg = parts_of(facts, call, expected), parts_of(facts, call, got)
    if len(pe) < 2 or pe.keys() != pg.keys():
        return
    wrong = [name for name in pe if not _same(pe[name], pg[name])]
    if not wrong:
        return
    if isinstance(expected, np.ndarray) and _given(call, pe):  # the scales are an argument, and cannot be wrong
        for seen in of_quantized(facts, call, pe, pg):
            yield replace(seen, text=seen.text.removeprefix("the scales are right, and "))
        return
    yield from of_quantized(facts, call, pe, pg)
    yield from _of_indices(call, pe, pg)
    if len(wrong) < len(pe) and len(wrong) <= MOST:
        verb = "are" if len(wrong) > 1 or is_plural(wrong[0]) else "is"
        rest = [name for name in pe if name not in wrong]
        some = [name.replace(" of each ", " of a ") for name in wrong]  # others may be right
        text = f"only {_listed([_words(name) for name in some])} {verb} wrong"
        text += f"; {rest[0]} {'are' if is_plural(rest[0]) else 'is'} right" if len(rest) == 1 else ""
        yield Seen(
            f"{_listed(some)} wrong", text, "Work one of them by hand for the smallest case.", 40 + len(wrong) / 2
        )
    if len(wrong) > MOST and not facts.spec.parts:
        return  # where so many fields are wrong, they may stand elsewhere
    quantities = quantities_of(facts.spec, call.case)
    for place, name in enumerate(wrong):
        for words, value in {**quantities, **sizes}.items():
            if _holds(pg[name], value) and not _holds(pe[name], value):
                text = f"in {_words(name)} stands {words}" + ("; the rest is right" if len(wrong) == 1 else "")
                yield Seen(f"{name}: another number", text, "Compare it with the docstring.", 13 + place / 3, weak=True)
        for seen in of_numbers(pe[name], pg[name], {}):
            if seen.rank < VAGUE:
                more = "; the rest is right" if len(wrong) == 1 else ""
                rank = seen.rank + 0.3 * place + (1 if len(wrong) > 1 else 0)
                yield Seen(
                    f"{name}: {seen.title}", f"in {_words(name)}, {seen.text}{more}", seen.cure, rank, weak=seen.weak
                )
        for seen in of_places(pe[name], pg[name]):
            more = "; the rest is right" if len(wrong) == 1 else ""
            rank = seen.rank + 0.3 * place + (1 if len(wrong) > 1 else 0)
            yield Seen(
                f"{name}: {seen.title}", f"in {_words(name)}, {seen.text}{more}", seen.cure, rank, weak=seen.weak
            )


def _given(call: Call, parts: Parts) -> bool:
    """Whether one of the parts is an argument, as it came."""
    arrays = [part for part in call.case if isinstance(part, np.ndarray)]
    return any(np.array_equal(part, array) for part in parts.values() for array in arrays)


def _holds(part: Any, value: Any) -> bool:
    """Whether a part of a result is what the lesson names: one number, or one for each record."""
    if isinstance(part, list) and isinstance(value, list | tuple):
        return part == list(value)
    return isinstance(part, list) and len(part) == 1 and type(value) is int and part[0] == value  # True is no number


def _words(name: str) -> str:
    """``the field dims of the descriptors`` for ``descriptors: dims``; other names as they are."""
    record, colon, field = name.partition(": ")
    if colon:
        return f"the field {field} of the {record}" if record == "descriptors" else f"the field {field} of {record}"
    return f"the field {name}" if "." in name else name


def _of_indices(call: Call, pe: Parts, pg: Parts) -> Iterator[Seen]:
    """Numbers that were taken from other indices of an argument than the right ones."""
    arrays = [part for part in call.case if isinstance(part, np.ndarray) and part.ndim and part.dtype.kind in "iu"]
    for name in pe if arrays else ():
        e, g = np.asarray(pe[name]), np.asarray(pg[name])
        if e.shape != g.shape or not e.ndim or (e == g).all() or arrays[0].shape[:-1] != e.shape[:-1]:
            continue
        mine, right = _index(arrays[0], g), _index(arrays[0], e)
        if mine and right and mine != right:
            text = (
                f"{name} hold the values at index {mine}, and those at index {right} belong there; i counts the bytes"
            )
            yield Seen(
                "other indices", text, "Write down which two values the second byte holds.", 12, weak=e.shape[-1] < 3
            )


def _index(argument: np.ndarray, part: np.ndarray) -> str:
    """``2 i + 1``: from which index of the argument's last axis the values of a part come; "" if there is no rule."""
    i = np.arange(part.shape[-1])
    for factor in (2, 1, 4):
        for start in (0, 1, 2, -1, part.shape[-1]):
            at = factor * i + start
            inside = at.min() >= 0 and at.max() < argument.shape[-1]
            varied = part.size == 1 or len(set(part.reshape(-1).tolist())) > 1
            if inside and varied and ((argument[..., at] & 15) == part).all():
                first = "i" if factor == 1 else f"{factor} i"
                if start == part.shape[-1] > 2:
                    return f"{first} + n / 2"
                return f"{first} {'+' if start > 0 else '-'} {abs(start)}" if start else first
    return ""


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
    return equal(a, b)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def of_lengths(facts: Facts, call: Call, expected: Any, got: Any, sizes: Mapping[str, int]) -> Iterator[Seen]:
    """Bytes that are too many or too few: how many for each row, and which part of the right ones is there."""
    if not (isinstance(expected, bytes) and isinstance(got, bytes)) or len(expected) == len(got):
        return
    off = len(got) - len(expected)
    many = "many" if off > 0 else "few"
    for name, size in sizes.items():
        for each in (1, 2, 3, 4, 8):
            if size > 0 and abs(off) == each * size:
                words = f"{name} times {each}" if each > 1 else name
                text = f"the number of bytes that are too {many} is {words}"
                yield Seen(f"too {many} bytes", text, "Count the bytes of each part.", 21, weak=True)
    fields = facts.spec.fields(*call.case) if facts.spec.fields else []
    regions: dict[str, tuple[int, int]] = {}
    for field, start, stop in fields:
        region = _region(field)
        first, last = regions.get(region, (start, start))
        regions[region] = (min(first, start), min(max(last, stop), len(expected)))
    length = "long" if off > 0 else "short"
    places = list(regions.items())
    for place, (name, (start, stop)) in enumerate(places):
        if start >= stop or stop - start == len(expected):
            continue
        verb = "are" if is_plural(name) else "is"
        if got[:stop] == expected[:stop] and place + 1 < len(places):
            begin = f"{name} {verb}" if start == 0 else f"everything up to the end of {name} is"
            rest = places[place + 1][0] if place + 2 == len(places) else "what follows"
            too = f"{'are' if is_plural(rest) else 'is'} too {length}" if rest != "what follows" else f"is too {length}"
            yield Seen(f"up to {name}", f"{begin} right, and {rest} {too}", "Count its bytes.", 24 - place / 9)
        if stop == len(expected) and got[-(stop - start) :] == expected[start:stop] and any(expected[start:stop]):
            text = f"{name} at the end {verb} right, and what comes before is too {length}"
            yield Seen(f"{name} right", text, "Count the bytes of what comes before.", 23)


def _region(field: str) -> str:
    """The part of a file that a field belongs to.

    >>> _region("the scale of row 3"), _region("header.magic"), _region("descriptor of 'w': dtype")
    ('the scales', 'the header', 'the descriptors')
    """
    word = re.split(r" of |\.|: ", field)[0].removeprefix("the ")
    plural = " of " in field and not word.endswith("s") and word not in ("data", "metadata")
    return f"the {word}{'s' if plural else ''}"
