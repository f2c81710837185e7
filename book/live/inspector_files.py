"""Python's side of the inspector's worker: the file that is looked at, and another one to compare it with."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from miniquant.core.slices import Slices
from miniquant.inspect.inspector import Inspector


class Files:
    """What the page asks, by name: ``main`` is the file that is looked at. Every answer is JSON."""

    def __init__(self) -> None:
        self.known: dict[str, Inspector] = {}

    def open(self, which: str, read: Callable[[int, int], Any], size: int, name: str, beside: Any, edits: str) -> str:
        """Read a file anew. read: gives bytes of it as an array of the page. edits: {offset: byte}, as JSON."""
        changed = {int(at): byte for at, byte in json.loads(edits).items()}
        slices = Slices(lambda start, end: read(start, end).to_bytes(), size, name, changed)
        others = {key: value.to_bytes() for key, value in beside.object_entries()}
        self.known[which] = Inspector(slices, others)
        return json.dumps(self.known[which].summary())

    def window(self, which: str, start: int, length: int) -> str:
        """A stretch of bytes."""
        return json.dumps(self.known[which].window(start, length))

    def at(self, offset: int) -> str:
        """What one byte is."""
        return json.dumps(self.known["main"].at(offset))

    def differences(self, start: int, length: int) -> str:
        """Which bytes differ in both files."""
        return json.dumps(self.known["main"].differences(self.known["other"], start, length))
