"""The exercises of lab 00: eight bytes, written and read back. They need numpy alone."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from ...lab.compare import Fields
from ...lab.spec import Case, Exercise, Mistake

GGUF_LITE = 0x474C4654  # the format's magic number
GGUF = 0x46554747  # that of real GGUF

# ---- magic_bytes -----------------------------------------------------------------------------------------------------


def magic_bytes(magic: int, version: int) -> bytes:
    """The reference: two numbers -> 8 bytes, each number 4 bytes, little-endian."""
    return np.array([magic, version], "<u4").tobytes()


def _bytes_oracle(magic: int, version: int) -> bytes:
    """Digit by digit, as one converts to base 256 by hand."""
    digits = []
    for number in (magic, version):
        for _ in range(4):
            digits.append(number % 256)
            number //= 256
    return bytes(digits)


def _bytes_cases(random: np.random.Generator) -> list[Case]:
    made = [(0x04030201, 5), (GGUF_LITE, 1), (GGUF, 3), (0xFF000000, 0), (0x80000000, 256)]
    return [*made, *((int(a), int(b)) for a, b in random.integers(0, 2**32, (2, 2)))]


def _bytes_fields(magic: int, version: int) -> Fields:
    return [("magic", 0, 4), ("version", 4, 8)]


MAGIC_BYTES = Exercise(
    name="magic_bytes",
    lab="00",
    goal="Turn a magic number and a version into the eight bytes with which a file begins.",
    minutes=2,
    difficulty="warm-up",
    reference=magic_bytes,
    oracle=_bytes_oracle,
    cases=_bytes_cases,
    fields=_bytes_fields,
    hints=(
        "Each number takes four bytes, whatever its size, and the byte with the smallest place value comes first.",
        '`np.array([magic, version], "<u4").tobytes()`: `<` is little-endian, `u4` an unsigned number of four bytes.',
    ),
    why="a program that opens this file looks at these bytes before it believes anything else.",
    mistakes=(
        Mistake(
            "big-endian",
            lambda magic, version: magic.to_bytes(4, "big") + version.to_bytes(4, "big"),
            "You put the byte with the largest place value first, the way we write numbers on paper.",
            'Say `"<u4"` to numpy, or `"little"` to `to_bytes`.',
            "`04 03 02 01` where `01 02 03 04` is expected",
        ),
        Mistake(
            "magic typed as letters",
            lambda magic, version: magic.to_bytes(4, "big") + version.to_bytes(4, "little"),
            "The magic went into the file in the order in which its letters read in the number, and only the version "
            "is little-endian.",
            "Treat both numbers alike: the magic is a number, and its letters come out reversed.",
            "the magic reversed and the version right",
        ),
        Mistake(
            "letters built in",
            lambda magic, version: b"GLFT" + version.to_bytes(4, "little"),
            "The letters of one format stand in your code, so every file gets them, whatever its magic.",
            "Store the argument `magic`, a number; its letters come out reversed.",
            "`47 4c 46 54` for every magic",
        ),
        Mistake(
            "one byte each",
            lambda magic, version: bytes([magic, version]),
            "`bytes([...])` makes one byte of each number, and a byte ends at 255.",
            'Give each number four bytes: `number.to_bytes(4, "little")`.',
            "an error that bytes must be in range(0, 256)",
        ),
        Mistake(
            "eight bytes each",
            lambda magic, version: np.array([magic, version], "<i8").tobytes(),
            "Without a type numpy takes eight bytes for an integer.",
            'Give the type: `np.array([magic, version], "<u4")`.',
            "16 bytes where 8 are expected",
        ),
        Mistake(
            "written as text",
            lambda magic, version: f"{magic}{version}".encode(),
            "These are the decimal digits of the numbers, one character each, as a text file would hold them.",
            "Store the numbers themselves, with `tobytes()` or `to_bytes`.",
            "bytes between `30` and `39`, which are the digits 0 to 9",
        ),
        Mistake(
            "version first",
            lambda magic, version: np.array([version, magic], "<u4").tobytes(),
            "The two numbers changed places.",
            "The magic comes first: it says what kind of file this is.",
            "the right eight bytes, the second four of them first",
        ),
        Mistake(
            "version left out",
            lambda magic, version: np.array([magic], "<u4").tobytes(),
            "Only the magic was written.",
            "Add four bytes for the version.",
            "4 bytes where 8 are expected",
        ),
    ),
)

# ---- read_magic ------------------------------------------------------------------------------------------------------


def read_magic(data: bytes) -> tuple[int, int]:
    """The reference: the first 8 bytes of data -> (magic, version); ValueError if there are fewer."""
    if len(data) < 8:
        raise ValueError(f"{len(data)} bytes are too few for a magic and a version; expected at least 8")
    magic, version = np.frombuffer(data, "<u4", count=2)
    return int(magic), int(version)


class Start(NamedTuple):
    """What a file begins with, its parts by name."""

    magic: int
    version: int


def _read_oracle(data: bytes) -> Start:
    """Each byte times its place value."""
    if len(data) < 8:
        raise ValueError("too few bytes")
    places = (1, 256, 65536, 16777216)
    return Start(sum(b * p for b, p in zip(data[:4], places)), sum(b * p for b, p in zip(data[4:8], places)))


def _read_cases(random: np.random.Generator) -> list[Case]:
    made = [
        "01 02 03 04 05 00 00 00",
        "54 46 4c 47 01 00 00 00",
        "47 47 55 46 03 00 00 00 ff",
        "ff ff ff ff fe ff ff ff 00",
    ]
    short = ["", "54 46 4c 47", "54 46 4c 47 01 00 00"]
    return [*((bytes.fromhex(text),) for text in made), (random.bytes(8),), *((bytes.fromhex(t),) for t in short)]


READ_MAGIC = Exercise(
    name="read_magic",
    lab="00",
    goal="Read the two numbers back from the first eight bytes of a file, and refuse a file that is too short.",
    minutes=2,
    difficulty="warm-up",
    reference=read_magic,
    oracle=_read_oracle,
    cases=_read_cases,
    hints=(
        "The same type as for writing tells numpy how to read, and only the first eight bytes matter.",
        '`np.frombuffer(data, "<u4", count=2)` gives both numbers, and raises a ValueError by itself if there are too '
        "few bytes.",
    ),
    why="every reader of every format begins like this: the right magic, a version that it knows, or no further step.",
    mistakes=(
        Mistake(
            "big-endian",
            lambda data: (int.from_bytes(_eight(data)[:4], "big"), int.from_bytes(_eight(data)[4:], "big")),
            "You gave the first byte the largest place value.",
            'Say `"<u4"` to numpy, or `"little"` to `from_bytes`.',
            "16909060 where 67305985 is expected",
        ),
        Mistake(
            "signed",
            lambda data: tuple(np.frombuffer(data, "<i4", count=2).tolist()),
            "`i4` is a signed type: from the middle of its range on, numbers come out negative.",
            "Use `u4`, the unsigned one.",
            "-1 where 4294967295 is expected",
        ),
        Mistake(
            "short files accepted",
            lambda data: (int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")),
            "A slice of too few bytes is no error in Python, so half a file gives a number too.",
            "Raise a ValueError if there are fewer than eight bytes.",
            "a result for an empty file, which must be refused",
        ),
        Mistake(
            "struct's own error",
            lambda data: struct.unpack("<II", data[:8]),
            "For a short file `struct.unpack` raises `struct.error`, which is no ValueError, so whoever catches the "
            "one misses the other.",
            "Look at `len(data)` first, and raise a ValueError yourself.",
            "a struct.error where a ValueError is expected",
        ),
        Mistake(
            "left as an array",
            lambda data: np.frombuffer(data, "<u4", count=2),
            "The array holds the right numbers, and what is asked for is two of them.",
            "Take it apart: `magic, version = ...`, then `return int(magic), int(version)`.",
            "an array where a tuple is expected",
        ),
        Mistake(
            "in the wrong order",
            lambda data: tuple(np.frombuffer(data, "<u4", count=2).tolist()[::-1]),
            "The version was returned first.",
            "Return `magic, version`.",
            "the two numbers changed over",
        ),
        Mistake(
            "one number of eight bytes",
            lambda data: int(np.frombuffer(data, "<u8", count=1)[0]),
            "All eight bytes were read as one number.",
            "Read two numbers of four bytes each.",
            "one huge number where two are expected",
        ),
        Mistake(
            "whole file read",
            lambda data: tuple(np.frombuffer(data, "<u4").tolist()),
            "Without `count=2` numpy reads all of the data, and a file goes on behind its first eight bytes.",
            "Add `count=2`, or slice `data[:8]`.",
            "an error about the size of the buffer for nine bytes",
        ),
        Mistake(
            "left as bytes",
            lambda data: (_eight(data)[:4], _eight(data)[4:]),
            "These are the bytes themselves, cut in two, and not yet numbers.",
            'Convert them: `int.from_bytes(..., "little")`, or `np.frombuffer`.',
            "bytes where numbers are expected",
        ),
    ),
)


def _eight(data: bytes) -> bytes:
    if len(data) < 8:
        raise ValueError("too few bytes")
    return data[:8]


# ---- byte_order ------------------------------------------------------------------------------------------------------


def byte_order(data: bytes, magic: int) -> str:
    """The reference: 4 bytes and the number they should be -> "little", "big" or "neither"."""
    for order in ("little", "big"):
        if int.from_bytes(data, order) == magic:
            return order
    return "neither"


def _order_oracle(data: bytes, magic: int) -> str:
    """By the hexadecimal digits: as they read on paper, or in pairs from the back."""
    digits = f"{magic:08x}"
    backwards = digits[6:8] + digits[4:6] + digits[2:4] + digits[0:2]
    return {backwards: "little", digits: "big"}.get(data.hex(), "neither")


def _order_cases(random: np.random.Generator) -> list[Case]:
    made = [
        ("01 02 03 04", 0x04030201),
        ("04 03 02 01", 0x04030201),
        ("54 46 4c 47", GGUF_LITE),
        ("47 4c 46 54", GGUF_LITE),
        ("47 47 55 46", GGUF_LITE),
        ("50 4b 03 04", GGUF_LITE),  # a zip file
        ("47 46 4c 54", GGUF_LITE),  # the right bytes in no order at all
    ]
    number = int(random.integers(2**24, 2**32))
    return [*((bytes.fromhex(text), magic) for text, magic in made), (number.to_bytes(4, "big"), number)]


def _names_swapped(data: bytes, magic: int) -> str:
    return {"little": "big", "big": "little"}.get(byte_order(data, magic), "neither")


def _never_neither(data: bytes, magic: int) -> str:
    return "little" if int.from_bytes(data, "little") == magic else "big"


def _any_order(data: bytes, magic: int) -> str:
    found = byte_order(data, magic)
    return "big" if found == "neither" and sorted(data) == sorted(magic.to_bytes(4, "big")) else found


def _of_the_machine(data: bytes, magic: int) -> str:
    return "little"


BYTE_ORDER = Exercise(
    name="byte_order",
    lab="00",
    goal="Tell from the first four bytes of a file in which order the program that wrote it stores numbers.",
    minutes=4,
    difficulty="core",
    reference=byte_order,
    oracle=_order_oracle,
    cases=_order_cases,
    hints=(
        "You know the number that should come out: read the bytes both ways and see which one gives it.",
        '`int.from_bytes(data, "little") == magic` answers one half of the question; the other half has `"big"` in it.',
    ),
    why="this is what a magic number is good for besides its name: read the wrong way round, it no longer fits.",
    mistakes=(
        Mistake(
            "names swapped",
            _names_swapped,
            "Little-endian means that the little end, the byte with the smallest place value, comes first.",
            'Return "little" when reading with `"little"` gives the magic.',
            "'big' for the bytes `01 02 03 04` of the number 0x04030201",
        ),
        Mistake(
            "never neither",
            _never_neither,
            "Whatever was not little-endian was called big-endian, even a file of another kind.",
            'Test for `"big"` as well, and return "neither" if that does not fit either.',
            "'big' for the first bytes of a zip file",
        ),
        Mistake(
            "nothing for neither",
            lambda data, magic: None if (found := byte_order(data, magic)) == "neither" else found,
            "A function that ends without a `return` returns None.",
            'Add `return "neither"` as the last line.',
            "None for the first bytes of a zip file",
        ),
        Mistake(
            "always little",
            _of_the_machine,
            "This is the order of your own computer, as `sys.byteorder` gives it, and says nothing about the file.",
            "Look at `data`: read it both ways and compare with `magic`.",
            "'little' for every file",
        ),
        Mistake(
            "compared without order",
            _any_order,
            "The same four bytes in some other order are not the magic, neither from the front nor from the back.",
            "Compare whole numbers instead of sorted bytes or sets.",
            "'big' for the bytes of the magic in a mixed order",
        ),
    ),
)

EXERCISES = [MAGIC_BYTES, READ_MAGIC, BYTE_ORDER]
