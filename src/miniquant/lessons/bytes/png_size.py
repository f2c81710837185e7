"""The first fields of a picture: big-endian, for once."""

import struct

from ...lab import Exercise, Mistake, body, edit, omit


def png_size(data):
    """Width and height of a PNG picture.

    data: bytes, the beginning of a file or all of it
    ->   (width, height), a tuple of two integers

    Bytes 0 to 7 are the signature 89 50 4e 47 0d 0a 1a 0a. The width is a
    u32 at byte 16, the height a u32 at byte 20, both big-endian. Raises
    ValueError for fewer than 24 bytes and for any other signature. Nothing
    else is checked: bytes 8 to 15 may be anything, and a width or a height
    may be 0.
    """
    if len(data) < 24:
        raise ValueError(f"{len(data)} bytes are too few for a PNG")
    if data[:8] != bytes.fromhex("89 50 4e 47 0d 0a 1a 0a"):
        raise ValueError("the file does not begin like a PNG")
    return struct.unpack_from(">II", data, 16)


def oracle(data):
    """By the hexadecimal digits: big-endian numbers read in hexadecimal as they read on paper."""
    digits = data.hex()
    if len(digits) < 48 or not digits.startswith("89504e470d0a1a0a"):
        raise ValueError("no PNG")
    return int(digits[32:40], 16), int(digits[40:48], 16)


def picture(width, height, signature="89 50 4e 47 0d 0a 1a 0a", rest=b""):
    """The beginning of a PNG file, up to its height, and what follows."""
    numbers = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return bytes.fromhex(signature) + b"\0\0\0\rIHDR" + numbers + rest


def cases(random):
    """Small pictures, whole beginnings, sizes above 2**31, then other signatures and files that are too short."""
    rest = bytes([8, 2, 0, 0, 0]) + random.bytes(20)
    wide, high = (int(n) for n in random.integers(300, 70_000, 2))
    good = [
        picture(2, 3),
        picture(640, 480, rest=rest),
        picture(1, 65_536, rest=rest),
        picture(0x01020304, 0x05060708),
        picture(2**31 + 5, 2**32 - 1, rest=rest),
        picture(wide, high, rest=rest),
        picture(10, 13),  # the bytes 0a and 0d, which end a line of text
        picture(7, 10, rest=rest),
        picture(0x0A0D0A20, 0x20090D0A),
        picture(0, 7, rest=rest),
        picture(9, 0),
        picture(3, 2)[:8] + bytes(range(1, 9)) + picture(3, 2)[16:] + rest,  # another part comes first
        2 * picture(3, 2)[:8] + picture(3, 2)[16:] + rest,  # the signature follows itself
    ]
    bad = [
        b"",
        picture(2, 3)[:8],
        picture(2, 3)[:20],
        picture(2, 3)[:23],
        picture(2, 3, "ff d8 ff e0 00 10 4a 46", rest),  # a JPEG
        picture(2, 3, "89 50 4e 47 0a 1a 0a 00", rest),  # a program that changes line ends took out a byte
        picture(2, 3, "09 50 4e 47 0d 0a 1a 0a", rest),  # a network that carries seven bits changed a byte
        picture(2, 3, "89 50 4e 47 0d 0a 1a 0b", rest),
        picture(2, 3, "89 70 6e 67 0d 0a 1a 0a", rest),
        picture(2, 3, "ff 50 4e 47 0d 0a 1a 0a", rest),  # one byte is wrong
        picture(2, 3, "89 51 4e 47 0d 0a 1a 0a", rest),
        picture(2, 3, "89 50 4d 47 0d 0a 1a 0a", rest),
        picture(2, 3, "89 50 4e 48 0d 0a 1a 0a", rest),
        picture(2, 3, "89 50 4e 47 0a 0a 1a 0a", rest),
        picture(2, 3, "89 50 4e 47 0d 0d 1a 0a", rest),
        picture(2, 3, "89 50 4e 47 0d 0a 0a 0a", rest),
        picture(2, 3, "89 4e 50 47 0d 0a 1a 0a", rest),  # two bytes exchanged
        bytes(24),
        b"\0\0" + picture(2, 3, rest=rest),  # the signature comes too late
    ]
    return [(data,) for data in [*good, *bad]]


def quantities(data):
    """What is special about the size of a picture."""
    there = [int.from_bytes(data[at : at + 4], "big") for at in (16, 20) if len(data) >= at + 4]  # no part of a number
    largest = max(there, default=0)
    return {
        "there are more than 24 bytes": len(data) > 24,
        "there are fewer than 24 bytes": len(data) < 24,
        "there are fewer than 8 bytes": len(data) < 8,
        "the width is more than the height": len(there) == 2 and there[0] > there[1],
        "the width or the height is 2**31 or more": largest >= 2**31,
        "the width or the height is 2**24 or more": largest >= 2**24,
        "the width or the height is 2**16 or more": largest >= 2**16,
        "the width or the height is 2**8 or more": largest >= 2**8,
        "one of bytes 16 to 23, the width and the height, is 0a, a newline in a text": b"\n" in data[16:24],
        "the width or the height is 0": 0 in there,
        "there are 24 bytes or more, and bytes 8 to 15 are not those of most files": len(data) >= 24 and data[8:16] != b"\0\0\0\rIHDR",
        "the first byte is wrong or missing": data[:1] != b"\x89",
        "the letters PNG are wrong or not all there": data[1:4] != b"PNG",
        "the last four bytes of the signature are wrong or not all there": data[4:8] != b"\r\n\x1a\n",
        "the signature is wrong or not all there": data[:8] != bytes.fromhex("89504e470d0a1a0a"),
    }


EXERCISE = Exercise(
    goal="Read the size of a picture from the first bytes of its file, and refuse what is not a PNG.",
    reference=png_size, oracle=oracle, cases=cases, minutes=5, difficulty="core", quantities=quantities,
    hints=(
        "Check before you read: first that there are enough bytes, then that the signature is right, and only then the two numbers.",
        "`struct.unpack_from` with two letters for a u32, `>` before them and the position 16 reads both numbers at once; `bytes.fromhex` writes the signature.",
    ),
    why="a reader checks the length and the signature before it believes a number.",
    mistakes=(
        Mistake("little-endian", edit('">II"', '"<II"'),
            cause="The numbers of a PNG are big-endian; these are the little-endian ones.",
            cure="Begin the text with `>`.", see="33554432 where 2 is expected"),
        Mistake("read right after the signature", edit("data, 16", "data, 8"),
            cause="These are bytes 8 to 15: the length and the name of the first part of the file, not the size of the picture.",
            cure="Read at byte 16.", see="13 and 1229472850 for every picture"),
        Mistake("the height first",
            edit('return struct.unpack_from(">II", data, 16)', 'return struct.unpack_from(">II", data, 16)[::-1]'),
            cause="The height comes first in the tuple.",
            cure="Return (width, height).", see="(3, 2) where (2, 3) is expected"),
        Mistake("signed", edit('">II"', '">ii"'),
            cause="Numbers from 2**31 on come out negative, as in a type with a sign.",
            cure="Use `I`, the letter of a u32.", see="-1 where 4294967295 is expected"),
        Mistake("two bytes for each number", edit('">II", data, 16', '">HH", data, 18'),
            cause="Width and height are read from two bytes each, and they have four.",
            cure="Use `I`, the letter of a u32.", see="0 where the height is expected"),
        Mistake("struct's own error", omit("if len(data)").edit("data[:8] !=", "len(data) >= 8 and data[:8] !="),
            cause="A short file raises `struct.error`, which is not a ValueError, unless its first eight bytes are another signature.",
            cure="Check `len(data)` first, and raise a ValueError.",
            see="a struct.error where a ValueError is expected"),
        Mistake("any signature", omit("if data[:8]"),
            cause="Every signature is accepted, so 24 bytes of any file are taken for a PNG.",
            cure="Compare the first eight bytes, and raise a ValueError if they differ.",
            see="(0, 0) for a file of zeros, which must be refused"),
        Mistake("half a signature",
            edit('data[:8] != bytes.fromhex("89 50 4e 47 0d 0a 1a 0a")', 'data[:4] != bytes.fromhex("89 50 4e 47")'),
            cause="Signatures of which only the first four bytes are right are accepted; the other four show damage by programs that change line ends.",
            cure="Compare all eight bytes.", see="a size for a PNG whose line ends were changed"),
        Mistake("only the letters", edit('data[:8] != bytes.fromhex("89 50 4e 47 0d 0a 1a 0a")', 'data[1:4] != b"PNG"'),
            cause="Signatures of which only the letters PNG are right are accepted; the signature has eight bytes.",
            cure="Compare all eight bytes.", see="a size for a file whose first byte is wrong"),
        Mistake("eight bytes are enough", edit("< 24", "< 8"),
            cause="The signature has eight bytes, but the height ends at byte 23.",
            cure="Refuse fewer than 24 bytes.", see="a struct.error for a file of 20 bytes"),
        Mistake("one byte too many", edit("< 24", "<= 24"),
            cause="A file of exactly 24 bytes holds both numbers, but it is refused.",
            cure="Refuse fewer than 24 bytes: `< 24`.", see="a ValueError for a file of 24 bytes"),
        Mistake("the height goes on to the end", body("""
                if len(data) < 24 or data[:8] != bytes.fromhex("89 50 4e 47 0d 0a 1a 0a"):
                    raise ValueError("no PNG")
                return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:], "big")
            """),
            cause="The height is made of all bytes from 20 to the end; it has four.",
            cure='Read four bytes: `data[20:24]`.', see='a huge height for a file that goes on'),
        Mistake("left as bytes", body("""
                if len(data) < 24 or data[:8] != bytes.fromhex("89 50 4e 47 0d 0a 1a 0a"):
                    raise ValueError("no PNG")
                return data[16:20], data[20:24]
            """),
            cause='These are the bytes of the numbers.',
            cure='Make numbers of them, with `struct` or `int.from_bytes`.', see='bytes where numbers are expected'),
        Mistake("the last byte of each", body("""
                if len(data) < 24 or data[:8] != bytes.fromhex("89 50 4e 47 0d 0a 1a 0a"):
                    raise ValueError("no PNG")
                return data[19], data[23]
            """),
            cause="Each number is its last byte alone; it has four.",
            cure='Read four bytes for each.', see='sizes below 256 right, and larger ones wrong'),
        Mistake("exactly 24 bytes", body("""
                if len(data) != 24 or data[:8] != bytes.fromhex("89 50 4e 47 0d 0a 1a 0a"):
                    raise ValueError("no PNG")
                import struct
                return struct.unpack_from(">II", data, 16)
            """),
            cause='A real file goes on after byte 23, and it is refused.',
            cure='Refuse fewer than 24 bytes only.', see='a ValueError for a whole picture'),
        Mistake("and instead of or", body("""
                if len(data) < 24 and data[:8] != bytes.fromhex("89 50 4e 47 0d 0a 1a 0a"):
                    raise ValueError("no PNG")
                import struct
                return struct.unpack_from(">II", data, 16)
            """),
            cause="ValueError is raised only if the file is short *and* has another signature; either is enough.",
            cure='Use `or`.', see='a size for a JPEG, and a struct.error for a short PNG'),
        Mistake("the test the wrong way round", body("""
                if len(data) < 24 or data[:8] == bytes.fromhex("89 50 4e 47 0d 0a 1a 0a"):
                    raise ValueError("no PNG")
                import struct
                return struct.unpack_from(">II", data, 16)
            """),
            cause='The right signature is refused and every other one accepted.',
            cure='Use `!=`.', see='a ValueError for every PNG'),
        Mistake("a dot that stops at a newline", body("""
                import re
                found = re.match(bytes.fromhex("89504e470d0a1a0a") + b".{8}(.{4})(.{4})", data)
                if not found:
                    raise ValueError("no PNG")
                return int.from_bytes(found[1], "big"), int.from_bytes(found[2], "big")
            """),
            cause="A picture with a 0a in its bytes 8 to 23 is refused, as by a dot in a pattern: without `re.DOTALL` it does not fit a newline.",
            cure="Give `re.match` the flag `re.DOTALL`, or use slices.", see="a ValueError for a picture that is 10 wide"),
        Mistake("None for what is no PNG", body("""
                if len(data) < 24 or data[:8] != bytes.fromhex("89 50 4e 47 0d 0a 1a 0a"):
                    return None
                import struct
                return struct.unpack_from(">II", data, 16)
            """),
            cause='A file that is no PNG gives None; the exercise asks for an error.',
            cure='Write `raise ValueError(...)`.', see='None where a ValueError is expected'),
    ),
)
