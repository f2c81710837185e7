"""The small fuzzer of lab 23: damage a valid file in five ways, see what a reader does, keep the first of each harm."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import FormatError
from ...formats.field import Dims, Text
from ...formats.fields import fields
from .machine import Harm, Machine

LIES = [0, 1, 2, 5, 200, 2**16, 2**31, 2**32 - 1, 2**32, 2**61, 2**62, 2**63, 2**64 - 8, 2**64 - 1]
Reader = Callable[[bytes, Machine], object]


@dataclass
class Found:
    """What came of some thousand damaged files: how many were read and refused, and of each harm the count and a file.

    ``first`` maps a kind of harm to (the damaged file, the valid one that it was made from, the sentence).
    """

    read: int = 0
    refused: int = 0
    harms: dict[str, int] = field(default_factory=dict)
    first: dict[str, tuple[bytes, bytes, str]] = field(default_factory=dict)

    def __repr__(self) -> str:
        total = self.read + self.refused + sum(self.harms.values())
        lines = [f"{total} damaged files: {self.read} read, {self.refused} refused"]
        lines += [f"  {kind}" for kind in sorted(self.harms)] or ["  no harm found"]
        return "\n".join(lines)


def places(data: bytes) -> tuple[list[tuple[int, int]], list[int]]:
    """Where the numbers of a valid file stand, as (first byte, how many), and where its names and texts begin."""
    numbers, texts = [], []
    for part in fields(data):
        width = part.decoder.width if isinstance(part.decoder, Dims) else len(part)
        if isinstance(part.decoder, Text):
            texts.append(part.start)
        elif part.category not in ("values", "padding") and width in (1, 2, 4, 8):
            numbers += [(at, width) for at in range(part.start, part.end, width)]
    return numbers, texts


def damaged(valid: bytes, numbers: list[tuple[int, int]], texts: list[int], seed: int) -> bytes:
    """A valid file after one, two or three injuries; the same seed gives the same file."""
    draw, data = random.Random(seed), bytearray(valid)

    def one_of(choices: list) -> Any:
        return choices[int(draw.random() * len(choices))]

    for _ in range(1 + draw.getrandbits(1) + draw.getrandbits(1)):
        way, at = draw.getrandbits(3), int(draw.random() ** 2 * len(data))  # the front is where the structure is
        start, width = one_of(numbers)
        if way < 4:  # a number lies
            old = int.from_bytes(data[start : start + width], "little")
            lie = one_of([*LIES, old + 1, old - 1, 2 * old, old + 32, len(valid), len(valid) - start])
            data[start : start + width] = (lie % 2 ** (8 * width)).to_bytes(width, "little")
        elif way == 4:  # a number is another one of the file
            other = one_of(numbers)[0]
            data[start : start + width] = data[other : other + width].ljust(width, b"\0")
        elif way == 5:  # the file ends
            del data[at:]
        elif way == 6:  # a name or text begins in another way
            piece, at = one_of([b"../", b"..\\", b"\xff", b"\0", b"\x1b[", b"b"]), one_of(texts or [0])
            data[at : at + len(piece)] = piece
        elif data:  # a bit flips
            data[min(at, len(data) - 1)] ^= 1 << draw.getrandbits(3)
    return bytes(data)


def fuzz(reader: Reader, valid: list[bytes], files: int) -> Found:
    """Hand a reader so many damaged files, each with a machine of its own;
    anything but ``FormatError`` is a harm."""
    found, known = Found(), [places(data) for data in valid]
    for seed in range(files):
        original = valid[seed % len(valid)]
        data = damaged(original, *known[seed % len(valid)], seed)
        try:
            reader(data, Machine())
        except FormatError:
            found.refused += 1
        except Harm as harm:
            _note(found, harm.kind, (data, original, str(harm)))
        except Exception as error:
            _note(found, f"crash: {type(error).__name__}", (data, original, f"{type(error).__name__}: {error}"))
        else:
            found.read += 1
    return found


def _note(found: Found, kind: str, example: tuple[bytes, bytes, str]) -> None:
    found.harms[kind] = found.harms.get(kind, 0) + 1
    found.first.setdefault(kind, example)
