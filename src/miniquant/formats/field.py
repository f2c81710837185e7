"""A field: a run of a file's bytes with one meaning, and the decoders that say what such bytes stand for."""

from __future__ import annotations

import math
import struct
from bisect import bisect, bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from ..core.slices import Bytes
from .strings import LENGTH, walk_strings

BEGINNING = 400  # bytes of a text or of unknown bytes: more than the 80 letters or 16 bytes that are shown
LINE = 2**16  # bytes in which a line's "=" is looked for first
SHOWN, SHOWN_OF_A_SLICE = 6, 32  # elements of an array in its short text, and in that of some of its bytes


class Decoder:
    """What the bytes of a field stand for. Positions count from the field's first byte; bytes may be cut short."""

    def value(self, raw: Bytes) -> Any:
        """What the bytes stand for; the bytes themselves if nothing more is known."""
        return bytes(raw)

    def text(self, raw: Bytes, start: int | None = None, end: int | None = None) -> str:
        """The value as short text; of an array, the elements that lie in the bytes ``start`` to ``end``."""
        return show(self.value(raw[:BEGINNING]))  # the field itself may be as long as a file

    def parts(self, size: int, start: int, end: int) -> str:
        """Which parts of a field of ``size`` bytes lie in its bytes ``start`` to ``end``, if they have names."""
        return ""


@dataclass(frozen=True)
class Field:
    """A run of bytes with one meaning.

    ``start`` and ``end`` (exclusive) count from the start of the file; ``category`` is a key of ``markup.CATEGORIES``.
    ``decoder`` says what ``raw``, the bytes, stand for.
    """

    name: str
    start: int
    end: int
    category: str
    explanation: str
    raw: Bytes = field(compare=False)
    decoder: Decoder = field(default_factory=Decoder, compare=False)

    def __len__(self) -> int:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Field({self.name!r}, {self.start}, {self.end}, {self.category!r}, value={self.text()})"

    @property
    def value(self) -> Any:
        """A number, a string, a tuple of dims, a member of an enum, a list of strings, or an array in its shape."""
        return self.decoder.value(self.raw)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of an array; ``None`` for other fields."""
        return self.decoder.shape if isinstance(self.decoder, Array) else None

    def text(self, start: int | None = None, end: int | None = None) -> str:
        """The value as short text; of an array, the elements that lie in the file's bytes ``start`` to ``end``."""
        low = None if start is None else max(self.start, start) - self.start
        high = None if end is None else min(self.end, end) - self.start
        return self.decoder.text(self.raw, low, high)

    def parts(self, start: int, end: int) -> str:
        """Which parts of the field lie in the file's bytes ``start`` to ``end``, if it has parts with names."""
        low, high = max(start, self.start) - self.start, min(end, self.end) - self.start
        return self.decoder.parts(self.raw.size, low, high)


@dataclass(frozen=True)
class Number(Decoder):
    """One number, by its ``struct`` code; ``as_hex`` for one that is a row of letters, too."""

    code: str
    as_hex: bool = False

    def value(self, raw: Bytes) -> Any:
        """The number; bytes that are cut short stay bytes."""
        if struct.calcsize(self.code) != raw.size:
            return bytes(raw)
        return struct.unpack(self.code, bytes(raw))[0]

    def text(self, raw: Bytes, start: int | None = None, end: int | None = None) -> str:
        """The number in decimal or hexadecimal digits."""
        value = self.value(raw)
        return f"0x{value:08X}" if self.as_hex and isinstance(value, int) else show(value)


@dataclass(frozen=True)
class Member(Decoder):
    """A number that names a member of an enum."""

    enum: type[IntEnum]
    code: str

    def value(self, raw: Bytes) -> Any:
        """The member; an unknown number stays a number, bytes that are cut short stay bytes."""
        number = Number(self.code).value(raw)
        return self.enum(number) if number in self.enum._value2member_map_ else number


@dataclass(frozen=True)
class Dims(Decoder):
    """Several numbers of ``width`` bytes, unsigned."""

    width: int

    def value(self, raw: Bytes) -> tuple[int, ...]:
        """The numbers that are there whole."""
        count = raw.size // self.width
        return struct.unpack(f"<{count}{'I' if self.width == 4 else 'Q'}", bytes(raw[: count * self.width]))


class Text(Decoder):
    """UTF-8."""

    def value(self, raw: Bytes) -> str:
        """The text; what is no UTF-8 shows as a question mark."""
        return bytes(raw).decode("utf-8", "replace")


class Line(Text):
    """A line of ``key=value``."""

    def value(self, raw: Bytes) -> str:
        """The value."""
        return super().value(raw).removesuffix("\n").partition("=")[2]

    def text(self, raw: Bytes, start: int | None = None, end: int | None = None) -> str:
        """The value as short text."""
        head = bytes(raw[:LINE])
        return show(self.value(raw[: head.index(b"=") + 1 + BEGINNING] if b"=" in head else raw))


@dataclass(frozen=True)
class Array(Decoder):
    """Numbers in a shape, stored in pieces of ``size`` bytes, each of which holds ``per`` of them; pictures call them
    ``label``.

    ``decode`` turns whole pieces, (bytes,) uint8, into a flat array. It is ``None`` for a type that cannot be decoded:
    then ``label`` names it, and the value is the bytes.
    """

    shape: tuple[int, ...]
    size: int
    per: int
    label: str
    decode: Callable[[np.ndarray], np.ndarray] | None
    piece_parts: dict[str, int] | None = None  # the parts of a piece, with their bytes
    shown: tuple[int, int] = (SHOWN, SHOWN_OF_A_SLICE)

    def value(self, raw: Bytes) -> np.ndarray:
        """The array in its shape, if all of it is there; else what is there, flat."""
        array = self._elements(raw, 0, raw.size // self.size)
        return array.reshape(self.shape) if array.size == math.prod(self.shape) else array

    def text(self, raw: Bytes, start: int | None = None, end: int | None = None) -> str:
        """Where in the array, and the first numbers there."""
        first = (start or 0) // self.size
        last = math.ceil((raw.size if end is None else end) / self.size)
        if self.decode is None:
            return f"{last - first} blocks of type {self.label}"
        shown = self.shown[start is not None]
        items = self._elements(raw, first, min(last, first + max(1, shown // self.per)))[:shown]
        if not len(items):
            return "cut short"
        listed = ", ".join(f"{x:.4g}" if items.dtype.kind == "f" else str(x) for x in items.tolist())
        named = self.parts(raw.size, start, end) if start is not None and end is not None else ""
        place = places_text(first * self.per, last * self.per - 1, self.shape)
        return f"{named + '; ' * bool(named)}{place}: {listed}" + ", …" * ((last - first) * self.per > shown)

    def parts(self, size: int, start: int, end: int) -> str:
        """Which parts of which pieces, for pieces that have parts."""
        if self.piece_parts is None:
            return ""
        found = []
        for block in range(start // self.size, (end - 1) // self.size + 1):
            at, names = block * self.size, []
            for name, length in self.piece_parts.items():
                if at < end and at + length > start:
                    names.append(name)
                at += length
            found.append(f"{', '.join(names)} of block {block}")
        return ", ".join(found)

    def _elements(self, raw: Bytes, first: int, last: int) -> np.ndarray:
        whole = np.ascontiguousarray(raw[first * self.size : min(last, raw.size // self.size) * self.size])
        return whole if self.decode is None else self.decode(whole)


def numbers(code: str, shape: tuple[int, ...], label: str = "") -> Array:
    """The decoder of plain numbers by numpy's code, such as ``<f4``."""
    return Array(shape, np.dtype(code).itemsize, 1, label, lambda raw: raw.view(code))


class Strings(Decoder):
    """An array of strings, each after its length, <Q."""

    _found: tuple[Bytes, Sequence[int]] | None = None  # where those of the bytes that were asked for last begin

    def value(self, raw: Bytes) -> list[str]:
        """The strings that are there whole."""
        return [self._string(raw, start) for start in self._starts(raw)]

    def text(self, raw: Bytes, start: int | None = None, end: int | None = None) -> str:
        """The first few, with their numbers."""
        starts = self._starts(raw)
        first = max(0, bisect(starts, start or 0) - 1)
        last = min(bisect_left(starts, raw.size if end is None else end), first + SHOWN + 1)
        inside = []
        for index in range(first, last):
            text = self._string(raw, starts[index])
            inside.append(f"[{index}] {text if len(text) <= 40 else text[:39] + '…'!r}")
        return ", ".join(inside[:SHOWN]) + ", …" * (len(inside) > SHOWN)

    def _starts(self, raw: Bytes) -> Sequence[int]:
        if self._found is None or self._found[0] is not raw:
            self._found = raw, walk_strings(raw, 0, raw.size // LENGTH.size, raw.size)[0]
        return self._found[1]

    def _string(self, raw: Bytes, start: int) -> str:
        (length,) = LENGTH.unpack(bytes(raw[start : start + LENGTH.size]))
        return bytes(raw[start + LENGTH.size : start + LENGTH.size + length]).decode("utf-8", "replace")


def show(value: Any) -> str:
    """A value as short text."""
    if isinstance(value, bytes):
        return value[:16].hex(" ") + (" …" if len(value) > 16 else "")
    if isinstance(value, IntEnum):
        return f"{value.value} ({value.name})"
    if isinstance(value, tuple):
        return " × ".join(map(str, value))
    return repr(value if len(value) <= 80 else value[:79] + "…") if isinstance(value, str) else str(value)


def places_text(first: int, last: int, shape: tuple[int, ...]) -> str:
    """Where the elements ``first`` to ``last`` of a flat array lie in its shape.

    >>> places_text(4, 7, (3, 8)), places_text(0, 0, ())
    ('[0, 4] to [0, 7]', 'the number')
    """
    if not shape:
        return "the number"
    last = min(last, math.prod(shape) - 1)
    return " to ".join(str(_index(k, shape)) for k in dict.fromkeys((first, last)))


def _index(number: int, shape: tuple[int, ...]) -> list[int]:
    """Where an element of a flat array lies in its shape; numpy's own knows no large numbers."""
    found = []
    for dim in reversed(shape):
        number, place = divmod(number, dim)
        found.append(place)
    return found[::-1]
