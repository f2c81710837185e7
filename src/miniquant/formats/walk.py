"""What the modules that name a file's bytes share: a position in the bytes, and names for what lies between."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.slices import Bytes
from .field import Decoder, Field

MAGIC_FIELD = "header.magic"


class Walk:
    """A position in a file's bytes. ``take`` and ``peek`` raise ``EOFError`` if the file ends first."""

    def __init__(self, data: Bytes) -> None:
        self.data, self.at = data, 0

    def take(self, name: str, size: int, category: str, decoder: Decoder, explanation: str) -> Field:
        """The next ``size`` bytes as a field."""
        self.need(size)
        start, self.at = self.at, self.at + size
        return Field(name, start, self.at, category, explanation, self.data[start : self.at], decoder)

    def peek(self, size: int) -> str:
        """The text ahead, without a step: 60 characters of it at most."""
        self.need(size)
        return bytes(self.data[self.at : self.at + min(size, 240)]).decode("utf-8", "replace")[:60]

    def need(self, size: int) -> None:
        """Raise ``EOFError`` if fewer bytes are left."""
        if self.at + size > self.data.size:
            raise EOFError


def padding(name: str, data: Bytes, start: int, end: int, what: str) -> Iterator[Field]:
    """The bytes from ``start`` to ``end`` as a field of padding, as far as the file has them; nothing if none."""
    end = min(end, data.size)
    if end > start:
        yield Field(name, start, end, "padding", what, data[start:end])


def cut_short(found: int, size: int) -> str:
    """What to add to the explanation of a field that the file's end cuts."""
    return f"; cut short: {found} of {size} bytes" if found < size else ""
