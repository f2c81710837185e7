"""Three numbers of three sizes, written with ``struct``."""

import struct

from ...lab import Exercise, Mistake, body, edit
from ...lab.compare import one_after_another
from ..shared.by_hand import by_digits


def pack_fields(kind, length, offset):
    """Three numbers of a file, one after another without a gap: a u8, a u16
    and a u64, all little-endian.

    kind: 0 to 255; length: 0 to 65,535; offset: 0 to 2**64 - 1
    ->   an object of type bytes, 11 of them
    """
    return struct.pack("<BHQ", kind, length, offset)


def oracle(kind, length, offset):
    """Digit by digit, as one converts to base 256 by hand."""
    return by_digits(kind, 1) + by_digits(length, 2) + by_digits(offset, 8)


def fields(kind, length, offset):
    """Three numbers of one, two and eight bytes."""
    return one_after_another([("kind", 1), ("length", 2), ("offset", 8)])


def cases(random):
    """Small numbers, bytes in order, the largest ones, offsets that four bytes or a float cannot hold, random ones."""
    made = [
        (1, 2, 3),
        (1, 0x0302, 0x0B0A090807060504),
        (0, 0, 0),
        (255, 65535, 2**64 - 1),
        (128, 32768, 2**63),
        (7, 256, 2**32),
        (3, 255, 2**53 + 1),
        (9, 40_000, 5),
        (200, 2, 3),
        (2, 300, 70_000),
        (130, 129, 2**31),
        (3, 255, 2**32 - 1),
    ]
    drawn = [[int(n) for n in random.integers(0, (256, 65536, 2**62))] for _ in range(2)]
    return [*made, *map(tuple, drawn)]


def quantities(kind, length, offset):
    """Which numbers are large."""
    return {
        "`offset` is more than 2**53": offset > 2**53,
        "a number is 0": 0 in (kind, length, offset),
        "a number is in the upper half of its range": kind > 127 or length > 2**15 - 1 or offset > 2**63 - 1,
    }


EXERCISE = Exercise(
    goal="Write three numbers of different sizes one after another, as a descriptor in a model file does.",
    reference=pack_fields, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up", fields=fields, quantities=quantities,
    hints=(
        "One call of `struct.pack` writes all three: its text has the byte order and then one letter for each number.",
        "Take the letters for u8, u16 and u64 from the table above, and begin the text with `<`.",
    ),
    why="every descriptor of every model file in this course is written like this.",
    mistakes=(
        Mistake("big-endian", edit("<BHQ", ">BHQ"),
            cause="The bytes of length and offset are in the other order: this is big-endian.",
            cure="Begin the text with `<`.", see="`00 02` where `02 00` is expected"),
        Mistake("no byte order, so there is padding", edit("<BHQ", "BHQ"),
            cause="There are zero bytes between the numbers, so that each begins at a multiple of its size, as a C compiler does it.",
            cure="Begin the text with `<`: then the order is fixed and nothing is added.",
            see="16 bytes where 11 are expected"),
        Mistake("four bytes for the offset", edit('struct.pack("<BHQ", kind, length, offset)',
                'struct.pack("<BHI", kind, length, offset % 2**32)'),
            cause="The offset has four bytes here, and a u64 has eight.",
            cure="Use the letter of a u64, `Q`.", see="7 bytes where 11 are expected"),
        Mistake("a letter that is too small", edit("<BHQ", "<BHI"),
            cause="Offsets that need more than four bytes are refused; a u64 has eight.",
            cure="Use the letter of a u64, `Q`.", see="a struct.error for an offset of 2**32"),
        Mistake("signed letters", edit("<BHQ", "<bhq"),
            cause="Numbers in the upper half are refused, as in types with a sign: a signed byte ends at 127, and a u8 ends at 255.",
            cure="Use capital letters for numbers without a sign.", see="a struct.error for 255"),
        Mistake("eight bytes for each", edit("<BHQ", "<QQQ"),
            cause="Each of the three numbers has eight bytes.",
            cure="Give each number its own letter: `B`, `H`, `Q`.", see="24 bytes where 11 are expected"),
        Mistake("in the wrong order", edit("kind, length, offset)", "kind, offset % 2**16, length)"),
            cause="The offset comes before the length.",
            cure="Write kind, length, offset, in this order.", see="the second and the third number exchanged"),
        Mistake("the offset as a float", edit("<BHQ", "<BHd"),
            cause="The last eight bytes are those of a floating-point number; all but 0 have other bits than the integer.",
            cure="Use the letter of a u64, `Q`.", see="`08 40` at the end, where zeros are expected"),
        Mistake("an array of one type", body("""
                import numpy as np
                return np.array([kind, length, offset], "<u8").tobytes()[:11]
            """),
            cause="The kind takes eight bytes, the length the other three, and no place is left for the offset: they must have one, two and eight bytes.",
            cure="Use `struct.pack`, which has a letter for each number.", see="zeros where the length is expected"),
        Mistake("one byte each", body("""
                return bytes([kind, length % 256, offset % 256])
            """),
            cause="Each number has one byte.",
            cure='Give each number its own letter: `B`, `H`, `Q`.', see='3 bytes where 11 are expected'),
        Mistake("two bytes for the kind", edit('<BHQ', '<HHQ'),
            cause="The kind has two bytes here, and a u8 has one.",
            cure='Use `B` for a u8.', see='12 bytes where 11 are expected'),
        Mistake("four bytes for the length", edit('<BHQ', '<BIQ'),
            cause="The length has four bytes here, and a u16 has two.",
            cure='Use `H` for a u16.', see='13 bytes where 11 are expected'),
        Mistake("all bytes reversed", body("""
                import struct
                return struct.pack('<BHQ', kind, length, offset)[::-1]
            """),
            cause="All eleven bytes are reversed as one row. The byte order concerns the bytes inside one number.",
            cure='Leave out the reversing.', see='the offset first, and its bytes reversed'),
        Mistake("written as text", body("""
                return f"{kind}{length}{offset}".encode()
            """),
            cause='These are decimal digits, one character each.',
            cure='Use `struct.pack`.', see='bytes from `30` to `39`, which are digits'),
        Mistake("the offset rounded by a float", body("""
                import struct
                return struct.pack('<BHQ', kind, length, min(int(float(offset)), 2**64 - 1))
            """),
            cause="Many offsets above 2**53 are a little off, as if they had been floats: above 2**53 a float does not hold every whole number.",
            cure='Leave the offset an integer.', see='large offsets off by one'),
        Mistake("the length signed", edit('<BHQ', '<BhQ'),
            cause="Lengths above 32767 are refused, as in a type with a sign; a u16 ends at 65535.",
            cure='Use a capital `H`.', see='a struct.error for a length of 65535'),
    ),
)
