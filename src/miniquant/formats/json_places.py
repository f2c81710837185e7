"""Where the members of a JSON object are in its text: the standard library's reader says what they are, not where."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


class Member(NamedTuple):
    """A member of an object: its key, where that begins, and where its value begins and ends."""

    key: str
    at: int
    start: int
    end: int


def members(text: str, at: int) -> Iterator[Member]:
    """The members of the object that begins in the text at ``at``, in its order.

    Raises ``ValueError`` or ``IndexError`` where the text is no JSON.

    >>> list(members('{"a": [1, 2]}', 0))
    [Member(key='a', at=1, start=6, end=12)]
    """

    def skip(at: int) -> int:
        space = _SPACE.match(text, at)
        return at if space is None else space.end()

    at = skip(skip(at) + 1)
    while text[at] != "}":
        begin = at
        key, at = _DECODER.raw_decode(text, at)
        start = skip(skip(at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        yield Member(key, begin, start, end)
        at = skip(end)
        at = skip(at + 1) if text[at] == "," else at


def byte_members(text: bytes, at: int = 0) -> Iterator[Member]:
    """The same in bytes: UTF-8 in, and places that count bytes."""
    for found in members(text.decode("latin-1"), at):  # a letter for each byte, and none of JSON's own is lost
        key, _ = _DECODER.raw_decode(text[found.at : found.start].decode("utf-8", "replace"))  # escapes or UTF-8
        yield found._replace(key=key)
