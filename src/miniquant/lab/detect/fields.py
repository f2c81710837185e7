"""How wrong bytes differ from the right ones, field by field: another width, another place, a number that is off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

from ..compare import Fields
from .letters import of_spaces
from .seen import Seen

MOST = 6  # fields whose orders are all tried
LONGEST = 100_000  # bytes; longer results are left alone
Unit = tuple[str, int, int, int]  # name, first byte, byte after the last, how many numbers


def kind_of(name: str) -> str:
    """The name of a field without the number or the name of its record.

    >>> kind_of("the scale of row 3"), kind_of("descriptor of 'w': dims[1]"), kind_of("header.magic")
    ('the scale of each row', 'descriptors: dims', 'header.magic')
    """
    name = re.sub(r"descriptor of ('[^']*'|\"[^\"]*\")", "descriptors", name)
    name = re.sub(r"data of ('[^']*'|\"[^\"]*\"): .*", "the data", name)
    name = re.sub(r"\[\d+\]", "", name)
    return re.sub(r"\bof (\w+) \d+(, (\w+) \d+)?", lambda m: f"of each {m[3] or m[1]}", name)


def is_plural(name: str) -> bool:
    """Whether a part is several things.

    >>> is_plural("the values of each block"), is_plural("the scale of each row"), is_plural("dims")
    (True, False, True)
    """
    return name.split(" of ")[0].endswith("s")


def of_fields(expected: Any, got: Any, fields: Fields | None) -> Iterator[Seen]:
    """What is true of wrong bytes whose right ones have these fields."""
    if not isinstance(expected, bytes) or not isinstance(got, bytes) or expected == got or len(expected) > LONGEST:
        return
    yield from _of_digits(expected, got)
    yield from _of_signs(expected, got)
    units = _units(fields or [], len(expected))
    if len(units) < 2:
        return
    for unit in units:
        yield from _of_unit(expected, got, unit)
    yield from _of_inserted(expected, got, units)
    yield from _of_first(expected, got, units)
    yield from _of_widths(expected, got, units)
    if len(expected) == len(got):
        yield from _of_order(expected, got, units)


def _units(fields: Fields, size: int) -> list[Unit]:
    """The fields, those of one list together; nothing if there are gaps."""
    units: list[Unit] = []
    for name, a, b in fields:
        name = re.sub(r"\[\d+\]$", "", name)
        if units and units[-1][0] == name and units[-1][2] == a:
            _, first, _, n = units.pop()
            units.append((name, first, min(b, size), n + 1))
        elif a < size:
            units.append((name, a, min(b, size), 1))
    whole = all(one[2] == two[1] for one, two in pairwise(units))
    return units if units and whole and units[0][1] == 0 and units[-1][2] == size else []


# fields whose bytes are no whole number
NO_NUMBER = "scale|value|data|block|line|JSON|text|padding|reserved|checksum|key$|name$"


def _of_first(expected: bytes, got: bytes, units: list[Unit]) -> Iterator[Seen]:
    """The first field whose number is wrong; what follows it may be wrong, too, and of another length."""
    at = next((i for i, (x, y) in enumerate(zip(expected, got)) if x != y), None)
    first = next((unit for unit in units if at is not None and unit[1] <= at < unit[2]), None)
    if first is None or first[3] > 1 or first[2] - first[1] > 8 or not first[2] <= len(got) != len(expected):
        return
    if re.search(NO_NUMBER, first[0]):
        return
    name, a, b, _ = first
    off = int.from_bytes(got[a:b], "little") - int.from_bytes(expected[a:b], "little")
    way = "large" if off > 0 else "small"
    text = f"the first field that is wrong is {kind_of(name)}: read there, its number is too {way}"
    if abs(off) < 1000:
        yield Seen("a wrong number", f"{text} by {abs(off)}", "Work this field by hand.", 22)
    yield Seen("a wrong number", text, "Work this field by hand.", 23)


def _of_unit(expected: bytes, got: bytes, unit: Unit) -> Iterator[Seen]:
    """Everything before and after this field is right."""
    name, a, b, n = unit
    head, tail = expected[:a], expected[b:]
    if len(got) < len(head) + len(tail) or not got.startswith(head) or not got.endswith(tail):
        return
    right, found = expected[a:b], got[a : len(got) - len(tail)]
    if right == found:
        return
    only = f"only the field {name} is wrong"
    if len(found) == len(right):
        if n == 1 and len(right) <= 8 and not re.search(NO_NUMBER, name):
            off = int.from_bytes(found, "little") - int.from_bytes(right, "little")
            way = "large" if off > 0 else "small"
            if found.strip().isdigit() and int(found) == int.from_bytes(right, "little"):
                text = f"{only}: its number is written with decimal digits, as text"
                yield Seen("written as text", text, "Use `struct.pack` or `.to_bytes`.", 8)
            yield Seen("a wrong number", f"{only}: its number is too {way} by {abs(off)}", "", 10)
            shown = int.from_bytes(found, "little")
            yield Seen("a wrong number", f"{only}: its number is {shown}", "", 13, weak=True)
        return
    low, high = places = alignment(expected, got) or (0, 0)
    yield from (replace(seen, weak=low < high) for seen in _of_width(right, found, unit))
    if any(places):
        return  # where the bytes came in, or are lost, is said below
    ends = f"the bytes before the field {name} are right" + (f", and so are the last {len(tail)}" if tail else "")
    if not a:
        ends = f"the bytes after the field {name} are right"
    text = f"{ends}; there, {_bytes(len(found))} found and {len(right)} expected"
    yield Seen(f"the field {name}", text, "Work this field by hand.", 16)


def _of_width(right: bytes, found: bytes, unit: Unit) -> Iterator[Seen]:
    """The numbers of a field are there, in more or fewer bytes."""
    name, a, b, n = unit
    if not found or len(found) not in (n, 2 * n, 3 * n, 4 * n, 8 * n):
        return
    if _numbers(right, n, "little") != _numbers(found, n, "little"):
        return
    there, cure = f"where the field {name} must stand", "Look at the letter or the number of bytes."
    if n > 1:
        said = f"{there}, each of its numbers has {_bytes(len(found) // n)} in place of {(b - a) // n}"
    else:
        said = f"{there}, its number has {_bytes(len(found))} in place of {b - a}"
        yield Seen("another width", f"{said}; the rest is right", cure, 8)
    if n > 1 or "[" not in name:
        yield Seen("another width", f"{there}, its numbers have {_bytes(len(found) // n)} each", cure, 9)


def alignment(expected: bytes, got: bytes) -> tuple[int, int] | None:
    """The first and the last place at which bytes may have come in or be lost, if that explains all; else ``None``.

    Where equal bytes stand beside each other, these are different places.

    >>> alignment(b"abc", b"abbbc"), alignment(b"abc", b"ac"), alignment(b"abc", b"axxx")
    ((1, 2), (1, 1), None)
    """
    short, long = sorted((expected, got), key=len)
    if len(short) == len(long):
        return None
    same = next((i for i, (x, y) in enumerate(zip(short, long)) if x != y), len(short))
    tail = next((i for i, (x, y) in enumerate(zip(short[::-1], long[::-1])) if x != y), len(short))
    return (len(short) - tail, same) if same + tail >= len(short) else None


def _of_inserted(expected: bytes, got: bytes, units: list[Unit]) -> Iterator[Seen]:
    """Bytes that came in or are lost in one place: what is true wherever exactly that is."""
    places = alignment(expected, got)
    if places is None:
        return
    low, high = places
    k = abs(len(got) - len(expected))
    more = len(got) > len(expected)
    end = high if more else high + k  # of the bytes of the right result that are concerned
    source = got if more else expected
    pieces = {source[at : at + k] for at in range(low, high + 1)}
    listed = f" ({next(iter(pieces)).hex(' ')})" if len(pieces) == 1 and k <= 4 else ""
    many = f"{_bytes(k)}{listed} {'are' if k > 1 else 'is'} {'too many' if more else 'missing'}"
    any_many = "bytes are too many" if more else "bytes are missing"
    before = [unit for unit in units if unit[2] <= low]
    after = [unit for unit in units if unit[1] >= end]
    inside = [unit for unit in units if unit[1] <= low and end <= unit[2]]
    cure = "Count the bytes of each field."
    if not more and low == high and (whole := [unit for unit in inside if (unit[1], unit[2]) == (low, end)]):
        text = f"the field {whole[0][0]} is missing, and the rest is right"
        yield Seen(f"{whole[0][0]} is missing", text, "Write it as well.", 7)
        return
    if len(inside) == 1 and not (before and after and before[-1][2] == after[0][1]):
        place = f"in the field {inside[0][0]}, or beside it"
    elif before and after and more and len(set(source[low : high + k])) > 1:
        place = f"where the field {after[0][0]} must stand"  # a wrong number of it may be among them
    elif before and after:
        place = f"between the fields {before[-1][0]} and {after[0][0]}"
    elif before:
        place = f"after the field {before[-1][0]}"
    elif after:
        place = f"before the field {after[0][0]}"
    else:
        return
    rest = "without them, the bytes are the right ones" if place.startswith("where") else "the rest is right"
    yield Seen(f"bytes {'too many' if more else 'missing'}", f"{place}, {many}; {rest}", cure, 13.5)
    yield Seen(f"bytes {'too many' if more else 'missing'}", f"{place}, {any_many}; {rest}", cure, 15)


def _numbers(data: bytes, n: int, order: Any) -> list[int]:
    width = len(data) // n
    return [int.from_bytes(data[i * width : (i + 1) * width], order) for i in range(n)]


def _bytes(n: int) -> str:
    return f"{n} byte{'s' * (n > 1)}"


def _of_widths(expected: bytes, got: bytes, units: list[Unit]) -> Iterator[Seen]:
    """All numbers with twice or half the bytes; one number among several with another width than its like."""
    for factor, words in ((2, "twice"), (4, "four times"), (0.5, "half")):
        if len(got) != len(expected) * factor or any(((b - a) / n * factor) % 1 for _, a, b, n in units):
            continue
        mine: list[int] = []
        for _, a, b, n in units:
            mine += _numbers(got[int(a * factor) : int(b * factor)], n, "little")
        right = [x for _, a, b, n in units for x in _numbers(expected[a:b], n, "little")]
        if mine == right:
            yield Seen("another width", f"every field takes {words} its bytes, and its number is right", "", 8)


def _of_order(expected: bytes, got: bytes, units: list[Unit]) -> Iterator[Seen]:
    """The right fields, in another order."""
    parts = [(name, expected[a:b]) for name, a, b, _ in units]
    if sorted(b"".join(part for _, part in parts)) != sorted(got):
        return  # no order of the fields has these bytes
    for i, (name, _) in enumerate(parts):
        rest = parts[:i] + parts[i + 1 :]
        for j in range(len(rest) + 1):
            moved = [*rest[:j], parts[i], *rest[j:]]
            if j != i and b"".join(part for _, part in moved) == got:
                place = f"after {rest[j - 1][0]}" if j else "at the beginning"
                yield Seen("a field in another place", f"all fields are right, but {name} comes {place}", "", 9)
    for i in range(len(parts)):
        for j in range(i + 1, len(parts)):
            moved = list(parts)
            moved[i], moved[j] = moved[j], moved[i]
            if b"".join(part for _, part in moved) == got:
                yield Seen("fields exchanged", f"the fields {parts[i][0]} and {parts[j][0]} are exchanged", "", 7)
    if len(parts) <= MOST:
        for order in permutations(parts):
            if b"".join(part for _, part in order) == got:
                listed = ", ".join(name for name, _ in order)
                yield Seen("fields in another order", f"the fields are there in the order {listed}", "", 10)


def _of_digits(expected: bytes, got: bytes) -> Iterator[Seen]:
    """Bytes that are written as digits."""
    digits = b"".join(got.split())
    hexadecimal = len(digits) == 2 * len(expected) > 2 and re.fullmatch(rb"[0-9a-fA-F]+", digits)
    if hexadecimal and (not digits.isdigit() or sorted(bytes.fromhex(digits.decode())) == sorted(expected)):
        text = "the result is text: hexadecimal digits, two characters for each byte"
        yield Seen("written as text", text, "Return the bytes themselves, with `struct.pack`.", 8)
    elif len(expected) > 3 and re.fullmatch(rb"[0-9 ,\[\]()]*[0-9][0-9 ,\[\]()]+", got):
        if len(digits) == 8 * len(expected) and not re.search(rb"[^01]", digits):
            yield Seen("written as text", "the result is text: binary digits", "Return bytes.", 8)
        else:
            yield Seen("written as text", "the result is text: numbers in decimal digits", "Return bytes.", 8)


def _of_signs(expected: bytes, got: bytes) -> Iterator[Seen]:
    """One sign that is written in another way wherever it stands."""
    try:
        e, g = expected.decode("utf-8"), got.decode("utf-8")
    except UnicodeDecodeError:
        return
    yield from of_spaces(e, g)
    for words, errors in (("missing", "ignore"), ("a question mark", "replace")):
        if e != g == e.encode("ascii", errors).decode():
            text = f"each character outside ASCII is {words}, and the rest is right"
            yield Seen("characters outside ASCII", text, 'Use `.encode("utf-8")`.', 7)
    if not e or sum(x.isprintable() for x in e) < 0.8 * len(e):
        return
    yield from of_replaced(e, g)
    if e.casefold() == g.casefold():
        yield Seen("capitals", "capital and small letters differ, and nothing else", "Keep the letters as they are.", 7)


def of_replaced(e: str, g: str) -> Iterator[Seen]:
    """``each '=' is written as ' = '``: a sign of a text that is replaced or missing in every place."""
    for sign in dict.fromkeys(x for x in e if not x.isalnum()):
        parts = e.split(sign)
        room = len(g) - sum(map(len, parts))
        if room < 0 or room % (len(parts) - 1):
            continue
        size = room // (len(parts) - 1)
        start = len(parts[0])
        other = g[start : start + size]
        if other != sign and size <= 8 and other.join(parts) == g:
            said = f"each {sign!r} is written as {other!r}" if other else f"each {sign!r} is missing"
            yield Seen("another sign", said, "Look at the text between the parts.", 9)
    lines, found = e.split("\n"), g.split("\n")
    if len(lines) != len(found):
        return
    for sign in dict.fromkeys(x for x in e if not x.isalnum() and x != "\n"):
        pairs = [(one.partition(sign), two) for one, two in zip(lines, found) if sign in one]
        others = {two[len(one[0]) : len(two) - len(one[2])] for one, two in pairs}
        same = all(two.startswith(one[0]) and two.endswith(one[2]) for one, two in pairs)
        rest = all(one == two for one, two in zip(lines, found) if sign not in one)
        if len(others) == 1 and same and rest and len(other := others.pop()) <= 8 and other != sign:
            said = f"the first {sign!r} of each line is written as {other!r}"
            yield Seen("another sign", said, "Look at the text between the parts.", 9.5)
