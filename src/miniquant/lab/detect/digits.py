"""Wrong whole numbers that were put together from digits: of bytes, of two numbers, or from the left of a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any

from .formulas import EXACT
from .seen import Seen

BASES = ((2, "b", "binary"), (16, "x", "hexadecimal"), (10, "d", "decimal"))
MOST = 6  # numbers whose digits are joined
LONGEST = 256  # bits
LAST = 4  # steps from one float64 to the next: so much a few roundings change


def of_digits(expected: Any, got: Any, arguments: Mapping[str, Any], numbers: Mapping[str, Any]) -> Iterator[Seen]:
    """``arguments`` by name; ``numbers`` are what a lesson names, by the words for them."""
    if type(expected) is not int or type(got) is not int or expected == got or min(expected, got) < 0:
        return
    if expected > EXACT and abs(expected - got) < LAST * (expected >> 52):
        text = "the right number is more than 2**53, and only its last digits are wrong"
        text += ": a float does not hold every whole number of this size"
        yield Seen("the last digits lost", text, "Compute with integers: `//` in place of `/`.", 19, whole=True)
    yield from _of_bytes(expected, got)
    given = {f"`{name}`": n for name, n in arguments.items() if type(n) is int and n >= 0}
    known = {words: n for words, n in numbers.items() if type(n) is int and n >= 0}
    for words in (words for words, n in known.items() if n == got >= EXACT):  # `of_formulas` has floats
        cure = "Compare it with what the docstring asks for."
        yield Seen("another quantity", f"the result is {words}", cure, 25, weak=True, whole=True)
    yield from _joined(expected, got, dict(list({**known, **given}.items())[:MOST]))
    yield from _from_the_left(got, given)


def _of_bytes(e: int, g: int) -> Iterator[Seen]:
    """Something made of the bytes of the right number that is not the number."""
    if not 256 <= e < 2**64:
        return
    data = e.to_bytes((e.bit_length() + 7) // 8, "big")
    ways = [("in the order of big-endian", data), ("in the order of little-endian", data[::-1])]
    for words, ordered in ways:
        digits = "".join(str(byte) for byte in ordered)
        if digits.lstrip("0") == str(g):
            text = f"the result is the decimal digits of the right number's bytes, one byte after the other, {words}"
            yield Seen("digits joined", text, "A byte counts 256 times the one below it.", 16, weak=True, whole=True)
    if sum(data) == g:
        yield Seen("bytes added", "the result is the sum of the right number's bytes", "", 16, weak=True, whole=True)


def _joined(e: int, g: int, numbers: Mapping[str, int]) -> Iterator[Seen]:
    """The digits of two numbers, one number after the other."""
    for (one, p), (two, q) in permutations(numbers.items(), 2):
        if max(p, q).bit_length() > LONGEST:
            continue
        for base, letter, name in BASES:
            digits = format(p, letter) + format(q, letter)
            rank = 18 if p else 26  # 0 and then a number is that number
            text = f"the result is the {name} digits of {one} and then of {two}, joined without leading zeros"
            if int(digits, base) == g:
                yield Seen("digits joined", text, "Fill each number up with zeros.", rank, needs=3, whole=True)
            elif base > 10 and digits.isdigit() and int(digits) == g:
                text += ", and read as a decimal number"
                yield Seen("digits joined", text, "The digits have another base.", rank, needs=3, whole=True)


def _from_the_left(g: int, numbers: Mapping[str, int]) -> Iterator[Seen]:
    """Some binary digits of one argument, counted from its highest bit."""
    for (number, n), (start, a), (count, c) in permutations(numbers.items(), 3):
        if n.bit_length() < LONGEST and max(a, c) < LONGEST and int(format(n, "b")[a : a + c] or "0", 2) == g:
            text = f"the result is {count} binary digits of {number}, counted from the left, after the first {start}"
            yield Seen("counted from the left", text, "Bit 0 is the lowest bit.", 18, needs=3, whole=True)
