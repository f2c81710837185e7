"""Eight bytes read back: a magic number and a version."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.by_hand import number


def read_magic(data):
    """The two numbers at the beginning of a file: bytes 0 to 3 are the
    magic, bytes 4 to 7 the version.

    data: bytes of a file, which may go on after the first 8
    ->   (magic, version), a tuple of two integers

    Both numbers are unsigned and little-endian. Raises ValueError if there
    are fewer than 8 bytes.
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
        "01 00 00 00 00 00 00 00 07 07",
        "00 00 00 00 02 00 00 00 07 07 07",
        "0a 20 09 0d 20 0d 0a 0a",  # what a program for texts takes for white space
        "54 46 4c 47 0a 00 00 0a 0d 0a",
    ]
    short = ["", "54 46 4c 47", "54 46 4c 47 01", "54 46 4c 47 01 00", "54 46 4c 47 01 00 00"]
    drawn = [random.bytes(8), random.bytes(41)]
    return [(data,) for data in [*map(bytes.fromhex, made), *drawn, *map(bytes.fromhex, short)]]


def quantities(data):
    """What is special about the bytes of the two numbers."""
    both = len(data) >= 8
    return {
        "there are more than 8 bytes": len(data) > 8,
        "there are 8 bytes or more, and the magic has a byte of 128 or more": both and any(byte > 127 for byte in data[:4]),
        "there are 8 bytes or more, and the version has a byte of 128 or more": both and any(byte > 127 for byte in data[4:8]),
        "there are 8 bytes or more, and the magic is 2**31 or more": both and data[3] > 127,
        "the version is 2**31 or more": both and data[7] > 127,
        "there are 8 bytes or more, and one of the first 8 is 0a, a newline in a text": both and b"\n" in data[:8],
        "the version is less than 256": both and not any(data[5:8]),
    }


EXERCISE = Exercise(
    goal="Read the two numbers back from the first eight bytes of a file, and refuse a file that is too short.",
    reference=read_magic, oracle=oracle, cases=cases, minutes=2, difficulty="warm-up", quantities=quantities,
    hints=(
        "Read with the type that you wrote with. Only the first eight bytes matter, and there may be fewer.",
        "`np.frombuffer` reads an array from bytes, and raises a ValueError by itself if there are fewer than its `count` needs; `int` makes an ordinary integer of an item.",
    ),
    why="every reader of every format begins like this: without the right magic and a version that it knows, it stops.",
    mistakes=(
        Mistake("big-endian", edit("<u4", ">u4"),
            cause="The first byte has the largest place value here; in this format it has the smallest.",
            cure='Say `"<u4"` to numpy, or `"little"` to `from_bytes`.', see="16909060 where 67305985 is expected"),
        Mistake("signed", edit("<u4", "<i4"),
            cause="Numbers from 2**31 on come out negative, as in a type with a sign.",
            cure="Use `u4`, the unsigned one.", see="-1 where 4294967295 is expected"),
        Mistake("short files accepted",
            body('return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")'),
            cause="Files of fewer than eight bytes give numbers, too; half a file must be refused.",
            cure="Raise a ValueError if there are fewer than eight bytes.",
            see="a result for an empty file, which must be refused"),
        Mistake("struct's own error", body("""
                import struct
                return struct.unpack("<II", data[:8])
            """),
            cause="A short file raises `struct.error`, which is not a ValueError; a program that catches ValueError does not catch it.",
            cure="Look at `len(data)` first, and raise a ValueError yourself.",
            see="a struct.error where a ValueError is expected"),
        Mistake("left as an array", body('return np.frombuffer(data, "<u4", count=2)'),
            cause="The array holds the right numbers, but the exercise asks for a tuple of two integers.",
            cure="Take it apart: `magic, version = ...`, then `return int(magic), int(version)`.",
            see="an array where a tuple is expected"),
        Mistake("in the wrong order", edit("int(magic), int(version)", "int(version), int(magic)"),
            cause="The version comes first in the tuple.",
            cure="Return `magic, version`.", see="the version where the magic is expected"),
        Mistake("one number of eight bytes", body('return int(np.frombuffer(data, "<u8", count=1)[0])'),
            cause="All eight bytes make one number.",
            cure="Read two numbers of four bytes each.", see="one huge number where two are expected"),
        Mistake("whole file read", edit(", count=2", ""),
            cause="Files of more than eight bytes raise an error; a file goes on after its first eight bytes.",
            cure="Add `count=2`, or slice `data[:8]`.", see="an error about the size of the buffer for nine bytes"),
        Mistake("left as bytes", body("""
                if len(data) < 8:
                    raise ValueError("too few bytes")
                return data[:4], data[4:8]
            """),
            cause="These are bytes, cut in two; they are not numbers yet.",
            cure='Convert them: `int.from_bytes(..., "little")`, or `np.frombuffer`.',
            see="bytes where numbers are expected"),
        Mistake("all that follows as the version", body("""
                if len(data) < 8:
                    raise ValueError("too few bytes")
                return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:], "little")
            """),
            cause="The version is made of all bytes from 4 to the end of the file; it has four bytes only.",
            cure='Read the version from `data[4:8]`.', see='a huge version for nine bytes'),
        Mistake("one byte of the version", body("""
                if len(data) < 8:
                    raise ValueError("too few bytes")
                return int.from_bytes(data[:4], "little"), data[4]
            """),
            cause="The version is byte 4 alone, and it has four bytes.",
            cure='Read `data[4:8]` as one number.', see='small versions right and larger ones wrong'),
        Mistake("eight bytes refused", body("""
                if len(data) <= 8:
                    raise ValueError("too few bytes")
                return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")
            """),
            cause='Eight bytes are enough, but they are refused.',
            cure='Refuse fewer than eight bytes: `< 8`.', see='a ValueError for eight bytes'),
        Mistake("four bytes accepted", body("""
                if len(data) < 4:
                    raise ValueError("too few bytes")
                return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")
            """),
            cause='Four bytes hold the magic, but not the version.',
            cure='Refuse fewer than eight bytes.', see='a version of 0 for a file of four bytes'),
        Mistake("the version signed", body("""
                if len(data) < 8:
                    raise ValueError("too few bytes")
                return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little", signed=True)
            """),
            cause="The version comes out negative from 2**31 on, as in a type with a sign.",
            cure='Read it without a sign.', see='a negative version'),
        Mistake("one format only", body("""
                if len(data) < 8:
                    raise ValueError("too few bytes")
                magic, version = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")
                if magic != 0x474C4654:
                    raise ValueError("another magic")
                return magic, version
            """),
            cause="Every magic but that of GGUF-lite is refused. Read the number; whoever calls the function decides.",
            cure='Return the two numbers, whatever the magic is.', see='a ValueError for 01 02 03 04'),
        Mistake("a list", body("""
                if len(data) < 8:
                    raise ValueError("too few bytes")
                return [int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")]
            """),
            cause='The numbers are right, but in a list.',
            cure='Return a tuple: `return magic, version`.', see='a list where a tuple is expected'),
        Mistake("an assertion", body("""
                assert len(data) >= 8
                return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")
            """),
            cause="An AssertionError is raised, and ValueError is asked for; Python can be told to skip assertions.",
            cure='Write `if len(data) < 8: raise ValueError(...)`.', see='an AssertionError where a ValueError is expected'),
    ),
)
