"""How a wrong text differs from the right one: which line, which words, how numbers are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from .seen import Seen

TOKEN = re.compile(r"\d[\d,_]*(?:\.\d+)?|[^\W\d]\w*|\s+|.", re.DOTALL)
NUMBER = re.compile(r"\d[\d,_]*(\.\d+)?$")
SEPARATORS = ("; ", ", ", ";", ",", " | ", " ")
SHORTEST = 12  # characters; shorter texts are names
MOST = 3  # differences that are listed


def of_texts(expected: Any, got: Any, quantities: dict[str, Any]) -> Iterator[Seen]:
    """Texts of some length, line by line."""
    numbers = {words: value for words, value in quantities.items() if type(value) in (int, float)}
    if not isinstance(expected, str) or not isinstance(got, str) or expected == got or len(expected) < SHORTEST:
        return
    e, g = expected.split("\n"), got.split("\n")
    if len(e) != len(g):
        text = f"the number of newlines is {len(g) - 1}, and {len(e) - 1} is right"
        yield Seen("another number of lines", text, "Count the newlines.", 19)
        return
    cure = "Compare it with the form that is asked for."
    wrong = [n for n, (a, b) in enumerate(zip(e, g)) if a != b]
    found: list[str] = []
    for n in wrong:
        place = f"in line {n + 1}, " if len(e) > 1 else ""
        differences = list(_of_line(e[n], g[n], numbers))
        found += [place + text for text in differences]
        if len(differences) == 1 and (nth := _only_number(e[n], g[n])):
            if len(wrong) == 1:
                yield Seen("a number in a line", f"{place}only number {nth} is wrong", cure, 18.5)
            yield Seen("a number in a line", f"{place}number {nth} is wrong", cure, 18.6)
        for rank, text in enumerate(differences):
            yield Seen("a detail of a line", place + text, cure, 17 + rank / 10)
    if 1 < len(found) <= MOST:
        yield Seen("details of a text", "; ".join(found), cure, 16)
    if 0 < len(wrong) < len(e):
        lines = " and ".join(str(n + 1) for n in wrong)
        verb = "is" if len(wrong) == 1 else "are"
        yield Seen(f"line {lines}", f"only line{'s' * (len(wrong) > 1)} {lines} {verb} wrong", "", 31)


def _of_line(e: str, g: str, numbers: dict[str, float]) -> Iterator[str]:
    """What differs in one line."""
    if whole := _of_pieces(e, g):
        yield whole
        if "another order" in whole and (first := _extreme(e, g)):
            yield first
        return
    a, b = TOKEN.findall(e), TOKEN.findall(g)
    if sorted(a) == sorted(b):
        yield "the words are right, in another order"
        return
    counts = _ordinals(a)
    for kind, i, j, m, n in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        old, new = "".join(a[i:j]), "".join(b[m:n])
        if kind == "equal":
            continue
        if j - i == n - m and all(NUMBER.match(x) and NUMBER.match(y) for x, y in zip(a[i:j], b[m:n])):
            yield from (_of_number(x, y, counts[at], numbers) for at, x, y in zip(range(i, j), a[i:j], b[m:n]))
        elif any(x.isdigit() for x in old + new):
            yield f"something is wrong after {''.join(a[:i])[-12:]!r}" if i else "something is wrong at the beginning"
        elif kind == "insert":
            yield f"{new!r} is too much after {_before(a, i)}"
        elif kind == "delete":
            yield f"{old!r} is missing after {_before(a, i)}"
        else:
            yield f"{new!r} stands in place of {old!r}"


def _before(tokens: list[str], at: int) -> str:
    """The nearest word before a place; a number is not named, since each case has a different one."""
    words = [token for token in tokens[:at] if token.strip()]
    if not words:
        return "the beginning"
    return "a number" if NUMBER.match(words[-1]) else repr(words[-1])


def _ordinals(tokens: list[str]) -> dict[int, int]:
    """For each place of a number, the how many-th number it is."""
    places = [at for at, token in enumerate(tokens) if NUMBER.match(token)]
    return {at: n + 1 for n, at in enumerate(places)}


def _of_number(e: str, g: str, nth: int, numbers: dict[str, float]) -> str:
    """How one number in a line is written wrong."""
    which = f"number {nth}"
    right, found = (len(x.partition(".")[2]) for x in (e, g))
    same_value = _value(e) == _value(g)
    if same_value and ("," in e) != ("," in g) and right == found:
        return f"{which} has {'no ' if ',' in e else ''}commas between thousands"
    if right != found:
        few = min(right, found)
        if abs(_value(e) - _value(g)) <= 10**-few:
            asked = f"{right} {'is' if right == 1 else 'are'} asked for"
            return f"{which} has {found} decimal{'s' * (found != 1)}, and {asked}"
    if same_value:
        return f"{which} is written in another way"
    if right == found and abs(_value(e) - _value(g)) <= 1.01 * 10**-right:
        if not right:
            return f"{which} is too {'large' if _value(g) > _value(e) else 'small'} by 1"
        return f"{which} is off by 1 in its last place, as if it were rounded in another way"
    for words, value in numbers.items():
        if f"{value:.{found}f}" == g.replace(",", ""):
            return f"{which} is {words}"
    for factor, words in ((10, "10"), (100, "100"), (1000, "1,000"), (10**6, "1,000,000"), (8, "8")):
        for off, side in ((factor, "large"), (1 / factor, "small")):
            rounded = 0.51 * (off * 10**-right * bool(right) + 10**-found)
            if _value(e) and _value(g) and abs(_value(g) - off * _value(e)) <= rounded:
                return f"{which} is {words} times too {side}"
    return f"{which} is a different number"


def _only_number(e: str, g: str) -> int:
    """The how many-th number of a line is the only part that differs; 0 if there is no such one."""
    a, b = TOKEN.findall(e), TOKEN.findall(g)
    wrong = [at for at, (x, y) in enumerate(zip(a, b)) if x != y]
    if len(a) != len(b) or len(wrong) != 1 or not all(NUMBER.match(x[wrong[0]]) for x in (a, b)):
        return 0
    return _ordinals(a)[wrong[0]]


def _value(text: str) -> float:
    return float(text.replace(",", "").replace("_", ""))


def _of_pieces(e: str, g: str) -> str:
    """A list at the end of a line: pieces in another order, missing or too many."""
    for separator in SEPARATORS:
        one, two = (_pieces(x, separator) for x in (e, g))
        if len(one) > 1 and one != two and sorted(one) == sorted(two):
            return f"the parts that {separator!r} joins are right, in another order"
        if separator.strip(" ") and one != two:
            if len(two) < len(one) and two == [part for part in one if part in two]:
                return f"parts that {separator!r} joins are missing, and the others are right"
            if len(one) < len(two) and one == [part for part in two if part in one]:
                return f"there are parts joined by {separator!r} that do not belong there, and the others are right"
    return ""


def _extreme(e: str, g: str) -> str:
    """Parts in reversed order."""
    for separator in SEPARATORS:
        one, two = (_pieces(x, separator) for x in (e, g))
        if len(one) > 1 and one == two[::-1] != two:
            return f"the parts that {separator!r} joins are right, in reversed order"
    return ""


def _pieces(line: str, separator: str) -> list[str]:
    """The parts of a list at the end of a line, after its last colon, without a full stop."""
    _, colon, rest = line.rpartition(": ")
    return (rest if colon else line).rstrip(".").split(separator)
