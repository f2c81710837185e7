"""Eight bytes read back: a magic number and a version."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.by_hand import number


def read_magic(data):
    """The two numbers at the beginning of a file.

    data: bytes, 8 or more   ->   (magic, version), two integers

    Raises ValueError if there are fewer than 8 bytes.
    """
    magic, version = np.frombuffer(data, "<u4", count=2)
    return int(magic), int(version)


class Start(NamedTuple):
    """What a file begins with, its parts by name."""

    magic: int
    version: int


def oracle(data):
    """Each byte times its place value."""
    if len(data) < 8:
        raise ValueError("too few bytes")
    return Start(number(data[:4]), number(data[4:8]))


def cases(random):
    """Files of 8 bytes and longer ones, random bytes, then files that are too short."""
    made = [
        "01 02 03 04 05 00 00 00",
        "54 46 4c 47 01 00 00 00",
        "47 47 55 46 03 00 00 00 ff",
        "ff ff ff ff fe ff ff ff 00",
        "47 47 55 46 03 00 00 00 15 00 00 00",
    ]
    short = ["", "54 46 4c 47", "54 46 4c 47 01 00 00"]
    return [(data,) for data in [*map(bytes.fromhex, made), random.bytes(8), *map(bytes.fromhex, short)]]


EXERCISE = Exercise(
    goal="Read the two numbers back from the first eight bytes of a file, and refuse a file that is too short.",
    reference=read_magic, oracle=oracle, cases=cases, minutes=2, difficulty="warm-up",
    hints=(
        "The same type as for writing tells numpy how to read, and only the first eight bytes matter.",
        '`np.frombuffer(data, "<u4", count=2)` gives both numbers, and raises a ValueError by itself if there are too few bytes.',
    ),
    why="every reader of every format begins like this: the right magic, a version that it knows, or no further step.",
    mistakes=(
        Mistake("big-endian", edit("<u4", ">u4"),
            cause="You gave the first byte the largest place value.",
            cure='Say `"<u4"` to numpy, or `"little"` to `from_bytes`.', see="16909060 where 67305985 is expected"),
        Mistake("signed", edit("<u4", "<i4"),
            cause="`i4` is a signed type: from the middle of its range on, numbers come out negative.",
            cure="Use `u4`, the unsigned one.", see="-1 where 4294967295 is expected"),
        Mistake("short files accepted",
            body('return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")'),
            cause="A slice of too few bytes is no error in Python, so half a file gives a number too.",
            cure="Raise a ValueError if there are fewer than eight bytes.",
            see="a result for an empty file, which must be refused"),
        Mistake("struct's own error", body("""
                import struct
                return struct.unpack("<II", data[:8])
            """),
            cause="For a short file `struct.unpack` raises `struct.error`, which is no ValueError, so whoever catches the one misses the other.",
            cure="Look at `len(data)` first, and raise a ValueError yourself.",
            see="a struct.error where a ValueError is expected"),
        Mistake("left as an array", body('return np.frombuffer(data, "<u4", count=2)'),
            cause="The array holds the right numbers, and what is asked for is two of them.",
            cure="Take it apart: `magic, version = ...`, then `return int(magic), int(version)`.",
            see="an array where a tuple is expected"),
        Mistake("in the wrong order", edit("int(magic), int(version)", "int(version), int(magic)"),
            cause="The version was returned first.",
            cure="Return `magic, version`.", see="the two numbers changed over"),
        Mistake("one number of eight bytes", body('return int(np.frombuffer(data, "<u8", count=1)[0])'),
            cause="All eight bytes were read as one number.",
            cure="Read two numbers of four bytes each.", see="one huge number where two are expected"),
        Mistake("whole file read", edit(", count=2", ""),
            cause="Without `count=2` numpy reads all of the data, and a file goes on after its first eight bytes.",
            cure="Add `count=2`, or slice `data[:8]`.", see="an error about the size of the buffer for nine bytes"),
        Mistake("left as bytes", body("""
                if len(data) < 8:
                    raise ValueError("too few bytes")
                return data[:4], data[4:8]
            """),
            cause="These are the bytes themselves, cut in two, and not yet numbers.",
            cure='Convert them: `int.from_bytes(..., "little")`, or `np.frombuffer`.',
            see="bytes where numbers are expected"),
    ),
)
