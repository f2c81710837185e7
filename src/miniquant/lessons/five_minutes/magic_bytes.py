"""Eight bytes written: a magic number and a version."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import by_digits


def magic_bytes(magic, version):
    """The first eight bytes of a file.

    magic, version: integers from 0 to 2**32 - 1   ->   8 bytes, each number 4 bytes, little-endian
    """
    return np.array([magic, version], "<u4").tobytes()


def oracle(magic, version):
    """Digit by digit, as one converts to base 256 by hand."""
    return by_digits(magic, 4) + by_digits(version, 4)


def fields(magic, version):
    """Two numbers of four bytes."""
    return [("magic", 0, 4), ("version", 4, 8)]


def cases(random):
    """Bytes in order, the magic numbers of two formats, numbers above 2**31, then random ones."""
    made = [(0x04030201, 5), (0x474C4654, 1), (0x46554747, 3), (0xFF000000, 0), (0x80000000, 256)]
    return [*made, *map(tuple, random.integers(0, 2**32, (2, 2)).tolist())]


EXERCISE = Exercise(
    goal="Turn a magic number and a version into the eight bytes with which a file begins.",
    reference=magic_bytes, oracle=oracle, cases=cases, minutes=2, difficulty="warm-up", fields=fields,
    hints=(
        "Each number takes four bytes, whatever its size, and the byte with the smallest place value comes first.",
        '`np.array([magic, version], "<u4").tobytes()`: `<` is little-endian, `u4` an unsigned number of four bytes.',
    ),
    why="a program that opens this file looks at these bytes before it believes anything else.",
    mistakes=(
        Mistake("big-endian", edit("<u4", ">u4"),
            cause="You put the byte with the largest place value first, the way we write numbers on paper.",
            cure='Say `"<u4"` to numpy, or `"little"` to `to_bytes`.',
            see="`04 03 02 01` where `01 02 03 04` is expected"),
        Mistake("magic typed as letters",
            edit("np.array([magic, version]", 'magic.to_bytes(4, "big") + np.array([version]'),
            cause="The magic went into the file in the order in which its letters read in the number, and only the version is little-endian.",
            cure="Treat both numbers alike: the magic is a number, and its letters come out reversed.",
            see="the magic reversed and the version right"),
        Mistake("letters built in", edit("np.array([magic, version]", 'b"GLFT" + np.array([version]'),
            cause="The letters of one format are part of your code, so every file gets them, whatever its magic.",
            cure="Store the argument `magic`, a number; its letters come out reversed.",
            see="`47 4c 46 54` for every magic"),
        Mistake("one byte each", edit('np.array([magic, version], "<u4").tobytes()', "bytes([magic, version])"),
            cause="`bytes([...])` makes one byte of each number, and a byte ends at 255.",
            cure='Give each number four bytes: `number.to_bytes(4, "little")`.',
            see="an error that bytes must be in range(0, 256)"),
        Mistake("eight bytes each", edit(', "<u4"', ""),
            cause="Without a type numpy takes eight bytes for an integer.",
            cure='Give the type: `np.array([magic, version], "<u4")`.', see="16 bytes where 8 are expected"),
        Mistake("written as text",
            edit('np.array([magic, version], "<u4").tobytes()', 'f"{magic}{version}".encode()'),
            cause="These are the decimal digits of the numbers, one character each, as a text file would hold them.",
            cure="Store the numbers themselves, with `tobytes()` or `to_bytes`.",
            see="bytes between `30` and `39`, which are the digits 0 to 9"),
        Mistake("version first", edit("magic, version", "version, magic"),
            cause="The two numbers changed places.",
            cure="The magic comes first: it says what kind of file this is.",
            see="the right eight bytes, the second four of them first"),
        Mistake("version left out", edit("magic, version", "magic"),
            cause="Only the magic was written.",
            cure="Add four bytes for the version.", see="4 bytes where 8 are expected"),
    ),
)
