"""A computer that is only played: what a reader in C would do to the real one is noticed here, named, and not done.

The reader of lab 23 asks it for memory, copies into what it was given, counts its rounds and creates files. No byte is
allocated and no file is written. What would have hurt is raised as ``Harm``.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import NamedTuple

MEMORY = 1 << 20  # bytes that it has to give, ten times what an honest file of the lab needs
DRIVE = re.compile(r"[A-Za-z]:")  # such a path begins on another disk of Windows
ROUNDS = 5_000  # after so many, a loop counts as endless
U64 = 2**64 - 1  # `x & U64` is what a number of 64 bits keeps of x


class Harm(Exception):
    """What a file has made a reader do: ``kind`` in two or three words, and a sentence."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind = kind


class Buffer(NamedTuple):
    """A piece of memory that was given, by its length in bytes; nothing is in it."""

    size: int
    purpose: str


@dataclass
class Machine:
    """Keeps a list of what was asked of it: ``requests`` as (bytes, purpose), ``files`` by name."""

    memory: int = MEMORY
    most_rounds: int = ROUNDS
    rounds: int = 0
    requests: list[tuple[int, str]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    start: int = 0  # where the data of the file begin, as the reader computed it
    places: list[tuple[int, int, str]] = field(default_factory=list)
    counted: int = 0  # so many requests were added up: a hostile file makes thousands of them
    given: int = 0  # their bytes

    def __repr__(self) -> str:
        return "a machine"

    def number(self, data: bytes, at: int, size: int) -> int:
        """A number of the file, low byte first. After the end of the file there are zeros: so C's fread leaves it."""
        return int.from_bytes(data[at : at + size], "little")

    def allocate(self, size: int, purpose: str) -> Buffer:
        """So many bytes, if it has them."""
        self.requests.append((size, purpose))
        self.given += sum(asked for asked, _ in self.requests[self.counted :])
        self.counted = len(self.requests)
        if self.given > self.memory:
            raise Harm("huge allocation", f"{size:,} bytes asked for {purpose}, and the machine has {self.memory:,}")
        return Buffer(size, purpose)

    def store(self, buffer: Buffer, at: int, size: int) -> None:
        """Write so many bytes into a piece of memory, from its byte ``at`` on."""
        if at < 0 or at + size > buffer.size:
            raise Harm("write past a buffer", f"{size} bytes at {at} of {buffer.purpose}, which has {buffer.size}")

    def copy(self, buffer: Buffer, to: int, data: bytes, at: int, size: int) -> None:
        """Copy so many bytes of the file, from its byte ``at`` on, to byte ``to`` of a piece of memory."""
        if size and at + size > len(data):
            raise Harm(
                "read past the file", f"bytes {at} to {at + size} for {buffer.purpose}; the file has {len(data)}"
            )
        self.store(buffer, to, size)

    def step(self) -> None:
        """Once for every round of a loop."""
        self.rounds += 1
        if self.rounds > self.most_rounds:
            raise Harm("endless loop", f"not at the end after {self.most_rounds:,} rounds")

    def claim(self, at: int, size: int, name: str) -> None:
        """Note whose bytes these are; two tensors that have the same ones are changed by one attack."""
        for start, length, other in self.places:
            if size and length and at < start + length and start < at + size:
                raise Harm("shared bytes", f"{name!r} and {other!r} are made of the same bytes of the file")
        self.places.append((at, size, name))

    def create(self, name: str, content: bytes = b"") -> None:
        """Create a file in the folder ``export``."""
        path = posixpath.normpath(posixpath.join("export", name.replace("\\", "/")))
        if not path.startswith("export/") or DRIVE.match(name):
            raise Harm("file outside the folder", f"{name!r} in the folder export is {path!r}")
        self.note_file(name, path)

    def note_file(self, name: str, path: str) -> None:
        """Keep a file's path in the list; a name with control characters and a second file of one name are harms."""
        if re.search(r"[\0-\x1f\x7f]", name):
            raise Harm("control characters", f"a file called {name!r}, and every listing of the folder sends them on")
        if path.casefold() in self.files:
            raise Harm("lost tensor", f"{name!r} is written over another tensor's file")
        self.files.append(path.casefold())
