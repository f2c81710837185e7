"""Eight bytes written: a magic number and a version."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.by_hand import by_digits


def magic_bytes(magic, version):
    """The first eight bytes of a file: the magic number, then the version.

    magic, version: integers (int) from 0 to 2**32 - 1
    ->   an object of type bytes, 8 of them

    Each number takes 4 bytes, whatever its size, and is little-endian: the
    byte with the smallest place value first.
    """
    return np.array([magic, version], "<u4").tobytes()


def oracle(magic, version):
    """Digit by digit, as one converts to base 256 by hand."""
    return by_digits(magic, 4) + by_digits(version, 4)


def fields(magic, version):
    """Two numbers of four bytes."""
    return [("magic", 0, 4), ("version", 4, 8)]


def cases(random):
    """Small numbers first (``bytes(n)`` makes n bytes), then magic numbers, numbers above 2**31, and random ones."""
    small = [(1, 2), (258, 3), (0, 0)]
    made = [(0x04030201, 5), (0x474C4654, 1), (0x46554747, 3), (0xFF000000, 0), (0x80000000, 256), (7, 2**32 - 1)]
    made += [(0, 7), (9, 0), (10, 0x0D0A00)]  # bytes that end a line in a text
    made = [*small, *made]
    return [*made, *map(tuple, random.integers(0, 2**32, (2, 2)).tolist())]


def quantities(magic, version):
    """What is special about the bytes of the two numbers."""
    both = magic.to_bytes(4, "little"), version.to_bytes(4, "little")
    return {
        "`magic` is less than 2**24 and not 0": 0 < magic < 2**24,
        "a number has a byte of 0": any(0 in data for data in both),
        "a number has a byte of 128 or more": any(max(data) > 127 for data in both),
        "a number is 2**31 or more": max(magic, version) >= 2**31,
        "a number is 2**16 or more": max(magic, version) >= 2**16,
        "a number is 0": 0 in (magic, version),
    }


EXERCISE = Exercise(
    goal="Turn a magic number and a version into the eight bytes with which a file begins.",
    reference=magic_bytes, oracle=oracle, cases=cases, minutes=2, difficulty="warm-up", fields=fields, quantities=quantities,
    hints=(
        "Give both numbers the same type: four bytes each, no sign, the byte with the smallest place value first.",
        "Make an array of the two numbers with `np.array` and the type that the text above names; the method `tobytes` gives its bytes.",
    ),
    why="a program that opens this file checks these bytes before it reads anything else.",
    mistakes=(
        Mistake("big-endian", edit("<u4", ">u4"),
            cause="Both numbers have the byte with the largest place value first, the way we write numbers on paper.",
            cure='Say `"<u4"` to numpy, or `"little"` to `to_bytes`.',
            see="`00 00 00 01` where `01 00 00 00` is expected"),
        Mistake("the magic big-endian",
            edit("np.array([magic, version]", 'magic.to_bytes(4, "big") + np.array([version]'),
            cause="The magic has its largest place value first, as one reads it on paper; only the version is little-endian.",
            cure="Treat both numbers alike: the magic is a number, too.",
            see="the magic reversed and the version right"),
        Mistake("letters built in", edit("np.array([magic, version]", 'b"GLFT" + np.array([version]'),
            cause="Every file begins with the letters GLFT, whatever its magic.",
            cure="Write the argument `magic`, which is a number.",
            see="`47 4c 46 54` for every magic"),
        Mistake("bytes of one format built in", edit("np.array([magic, version]", 'b"TFLG" + np.array([version]'),
            cause="Every file begins with the four bytes of GGUF-lite, whatever its magic.",
            cure="Write the argument `magic`: the check calls your function with other numbers, too.",
            see="`54 46 4c 47` for every magic"),
        Mistake("zeros, as many as the number says",
            edit('np.array([magic, version], "<u4").tobytes()', "bytes(min(magic, 999)) + bytes(min(version, 999))"),
            cause="The result is zero bytes only, more of them for a larger number; the numbers themselves are not in it.",
            cure="Convert the number: `number.to_bytes(4, \"little\")`, or an array's `tobytes()`.",
            see="zeros only, and not 8 of them"),
        Mistake("one byte each", edit('np.array([magic, version], "<u4").tobytes()', "bytes([magic, version])"),
            cause="Each number has one byte, so numbers above 255 are refused.",
            cure='Give each number four bytes: `number.to_bytes(4, "little")`.',
            see="2 bytes where 8 are expected"),
        Mistake("eight bytes each", edit(', "<u4"', ""),
            cause="Each number has eight bytes, and four are asked for.",
            cure='Give the type: `np.array([magic, version], "<u4")`.', see="16 bytes where 8 are expected"),
        Mistake("written as text",
            edit('np.array([magic, version], "<u4").tobytes()', 'f"{magic}{version}".encode()'),
            cause="These are the decimal digits of the numbers, one character each, as a text file would hold them.",
            cure="Store the numbers themselves, with `tobytes()` or `to_bytes`.",
            see="bytes between `30` and `39`, which are the digits 0 to 9"),
        Mistake("version first", edit("magic, version", "version, magic"),
            cause="The version comes first, and the magic after it.",
            cure="Write the magic first: it says what kind of file this is.",
            see="the right eight bytes, the second four of them first"),
        Mistake("version left out", edit("magic, version", "magic"),
            cause="Only the magic is there.",
            cure="Add four bytes for the version.", see="4 bytes where 8 are expected"),
        Mistake("the version big-endian", edit('np.array([magic, version], "<u4").tobytes()', 'magic.to_bytes(4, "little") + version.to_bytes(4, "big")'),
            cause='Only the magic is little-endian; the version has its largest place value first.',
            cure='Write both numbers in the same order.', see='the magic right and the version reversed'),
        Mistake("two bytes each", body("""
                import struct
                return struct.pack("<HH", magic, version)
            """),
            cause="Each number has two bytes, so numbers above 65,535 are refused; it needs four.",
            cure='Use a type of four bytes.', see='4 bytes, or an error for larger numbers'),
        Mistake("signed numbers", body("""
                import struct
                return struct.pack("<ii", magic, version)
            """),
            cause="Numbers from 2**31 on are refused, as in a type with a sign; here they go on to 2**32 - 1.",
            cure='Use an unsigned type.', see='an error for numbers from 2**31 on'),
        Mistake("floating-point numbers", edit('<u4', '<f4'),
            cause="These are the bytes of floating-point numbers; only 0 has the same bits as the integer.",
            cure='Use an unsigned whole number, `u4`.', see='`00 00 80 3f` where `01 00 00 00` is expected'),
        Mistake("always version 1", edit('np.array([magic, version], "<u4").tobytes()', 'magic.to_bytes(4, "little") + bytes([1, 0, 0, 0])'),
            cause='The version in the file is always 1, whatever the argument says.',
            cure='Write the argument `version`.', see='a 1 where the version 2 is expected'),
        Mistake("one byte of the version", edit('np.array([magic, version], "<u4").tobytes()', 'magic.to_bytes(4, "little") + bytes([version % 256, 0, 0, 0])'),
            cause="Only the lowest byte of the version is there, and three zeros.",
            cure='Write all four bytes of the version.', see='`ff 00 00 00` where `ff ff ff ff` is expected'),
        Mistake("an array instead of bytes", edit('.tobytes()', ''),
            cause="This is an array, and a file needs its bytes.",
            cure='Add `.tobytes()`.', see='an array where bytes are expected'),
        Mistake("hexadecimal text", edit('.tobytes()', '.tobytes().hex()'),
            cause='This is text that shows the bytes, not the bytes themselves.',
            cure='Leave out `.hex()`.', see='a str where bytes are expected'),
    ),
)
