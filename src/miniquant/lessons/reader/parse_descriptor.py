"""The third part of a file: the descriptors."""

from __future__ import annotations

import struct
from typing import NamedTuple

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, edit, omit
from ..shared.by_hand import number
from ..shared.gguf_lite_by_hand import descriptor_oracle


def parse_descriptor(data, position):
    """Read the descriptor that begins at a position.

    The fields, little-endian, without padding: name_len u16, in bytes; the
    name in UTF-8; n_dims u8; n_dims dims, each u32; dtype u8; offset u64.

    data: bytes of the whole file; position: an integer, 0 to len(data)
    ->   ((name, dims, dtype, offset), next): text, a tuple of integers in
         the order of the file, an integer, an integer; next is the position
         of the first byte after the descriptor

    Raises FormatError if data ends before the descriptor does, for a name
    that is not UTF-8, and for a dtype above 3. An empty name is read like
    any other; ``read_file`` will refuse it.
    """

    def take(form):
        nonlocal position
        start, position = position, position + struct.calcsize(form)
        if position > len(data):
            raise FormatError("the file ends in the middle of a descriptor", field="descriptor", offset=start)
        return struct.unpack_from(form, data, start)

    (name_len,) = take("<H")
    (name,) = take(f"{name_len}s")
    (n_dims,) = take("<B")
    dims = take(f"<{n_dims}I")
    dtype, offset = take("<BQ")
    if dtype > 3:
        raise FormatError(f"found {dtype}, the codes are 0 to 3", field="descriptor: dtype", offset=position - 9)
    try:
        return (name.decode("utf-8"), dims, dtype, offset), position
    except UnicodeDecodeError:
        raise FormatError("the name is not valid UTF-8", field="descriptor: name") from None


class Descriptor(NamedTuple):
    """The fields of a descriptor; a plain tuple is as good."""

    name: str
    dims: tuple[int, ...]
    dtype: int
    offset: int


class Parsed(NamedTuple):
    """A descriptor and the position after it."""

    descriptor: Descriptor
    next: int


def oracle(data, position):
    """Takes bytes from a list, of which the last comes first, and fails when it is empty."""
    left = list(data[position:])[::-1]

    def take(count, field):
        if len(left) < count:
            raise FormatError(f"{field} needs {count} bytes, and the file ends after {len(left)}")
        return bytes(left.pop() for _ in range(count))

    name = take(number(take(2, "name_len")), "name")
    dims = tuple(number(take(4, "dims")) for _ in range(number(take(1, "n_dims"))))
    dtype, offset = number(take(1, "dtype")), number(take(8, "offset"))
    if dtype not in (0, 1, 2, 3):
        raise FormatError(f"no dtype has the code {dtype}")
    try:
        return Parsed(Descriptor(str(name, "utf-8"), dims, dtype, offset), len(data) - len(left))
    except UnicodeDecodeError:
        raise FormatError(f"the name {name.hex(' ')} is no UTF-8") from None


def cases(random):
    """Good descriptors at several positions, then cut and damaged ones, then random ones."""
    small = descriptor_oracle("w", (2, 3), 1, 8)
    good = [
        (small, 0),
        (b"\xee" * 5 + small + b"\xee" * 20, 5),
        (descriptor_oracle("bias", (3,), 0, 0) + small, 0),
        (descriptor_oracle("s\0", (), 0, 16), 0),
        (descriptor_oracle("", (3,), 1, 2), 0),
        (descriptor_oracle("gröss", (2, 64), 3, 258), 0),
        (descriptor_oracle("unsigned", (2**32 - 1, 2**31), 1, 2**63), 0),
        (descriptor_oracle("d", (1,) * 255, 0, 0), 0),
        (descriptor_oracle("\ufeffBlock.W_q", (6, 5, 4), 1, 77), 0),
        (descriptor_oracle("n" * 40_000, (), 0, 0), 0),
        (descriptor_oracle("mm" * 128, (7,), 1, 32), 0),
        (b"front" * 60 + descriptor_oracle("n" * 300, (1, 2, 3, 4), 2, 0x0102030405), 300),
        (descriptor_oracle(" cafe\N{COMBINING ACUTE ACCENT}\r\n🥐 ", (0, 5), 3, 2**64 - 1), 0),
    ]
    cuts = [(small[:cut], 0) for cut in range(len(small))] + [(small, len(small))]
    bad_name = bytes([2, 0, 0xFF, 0xFE]) + small[3:]
    big_endian = struct.pack(">H1sB2IBQ", 1, b"w", 2, 2, 3, 1, 8)
    bad = [
        *cuts,
        (big_endian, 0),
        (small[:12] + b"\x04" + small[13:], 0),
        (small[:12] + b"\xc8" + small[13:], 0),
        (bad_name, 0),
        (b"front" + small[:-1], 5),
    ]
    drawn = random.integers(1, 2**20, (3, 3)).tolist()
    return [*good, *bad, *((descriptor_oracle(f"layers.{i}", (a, b), i, c), 0) for i, (a, b, c) in enumerate(drawn))]


def places(data, position):
    """Where the numbers of the descriptor stand."""
    after_name = position + 2 + number(data[position : position + 2])
    dtype = after_name + 1 + 4 * data[after_name]
    found = {"name_len": (position, position + 2), "n_dims": (after_name, after_name + 1)}
    found |= {f"dims[{i}]": (after_name + 1 + 4 * i, after_name + 5 + 4 * i) for i in range(min(data[after_name], 3))}
    return {**found, "dtype": (dtype, dtype + 1), "offset": (dtype + 1, dtype + 9)}


def traits(data, position):
    """What is wrong with a descriptor, or special about it."""
    left = data[position:]
    name_len = number(left[:2])
    name = left[2 : 2 + name_len]
    n_dims = left[2 + name_len] if len(left) > 2 + name_len else 0
    at = 3 + name_len + 4 * n_dims  # of the dtype
    whole = len(left) >= at + 9
    dtype, offset = (left[at], number(left[at + 1 : at + 9])) if whole else (0, 0)
    dims = [number(left[i : i + 4]) for i in range(3 + name_len, at, 4)] if whole else []
    text = name.decode("utf-8", "surrogateescape")
    valid = not any("\ud800" <= character <= "\udfff" for character in text)
    good = whole and dtype < 4 and valid
    return {
        "position is not 0": position != 0,
        "nothing is left at the position": not left,
        "the data ends before the end of name_len": len(left) < 2,
        "the data ends after name_len, and before the end of the name": 2 <= len(left) < 2 + name_len,
        "the data ends directly before n_dims": len(left) == 2 + name_len,
        "the data ends after n_dims, and before the end of the dims": 3 + name_len <= len(left) < at,
        "the data ends directly before the dtype": 3 + name_len <= len(left) == at,
        "the data ends after the dtype, and before the end of the offset": at < len(left) < at + 9,
        "the data ends directly after the dtype": len(left) == at + 1,
        "the data ends one byte before the end of the descriptor": len(left) == at + 8,
        "the data ends before the descriptor does": not whole,
        "the descriptor is all there, and its dtype is above 3": whole and dtype > 3,
        "the descriptor is all there, and its dtype is 4": whole and dtype == 4,
        "the descriptor is all there, and its name is not UTF-8": whole and not valid,
        **{
            f"the descriptor is good, and {words}": good and holds
            for words, holds in {
                "position is not 0": position != 0,
                "the name has capital letters": text != text.lower(),
                "the name is empty": name_len == 0,
                "the name has characters outside ASCII": not text.isascii(),
                "the name has white space at an end": text != text.strip(),
                "the name has 256 bytes or more": name_len > 255,
                "there are no dims": n_dims == 0,
                "there is one dim": n_dims == 1,
                "there are two dims": n_dims == 2,
                "there are not exactly two dims": n_dims != 2,
                "there are more than two dims": n_dims > 2,
                "there are 128 dims or more": n_dims > 127,
                "a dim is 256 or more": any(dim > 255 for dim in dims),
                "a dim is 2**16 or more": any(dim >= 2**16 for dim in dims),
                "a dim is 2**31 or more": any(dim >= 2**31 for dim in dims),
                "a dim is 0": 0 in dims,
                "the dims read the same from both ends": dims == dims[::-1],
                "the dims do not read the same from both ends": dims != dims[::-1],
                "the offset is not 0": offset > 0,
                "the offset is 256 or more": offset > 255,
                "the offset is 2**32 or more": offset >= 2**32,
                "the offset is 2**63 or more": offset >= 2**63,
                "the dtype is 3": dtype == 3,
                "the dtype is not 0": dtype > 0,
                "bytes follow it": len(left) > at + 9,
                "the data ends with it": len(left) == at + 9,
            }.items()
        },
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Read the descriptor that begins at a position, and say where the next one begins.",
    reference=parse_descriptor, oracle=oracle, cases=cases, places=places, minutes=8, difficulty="core",
    hints=(
        "Keep one running position. Before you read a field, compare the place where it ends with the length of data; after it, move on by its size.",
        "A small function inside your function saves repetition: it checks that so many bytes are left, gives them, and moves on (`nonlocal` lets it change the position). `struct.calcsize` gives the size of a format; an f-string can build the format of the dims.",
    ),
    why="descriptors have no fixed length, so a reader must read the first two to find the third.",
    mistakes=(
        Mistake("dims reversed",
            edit("""name.decode("utf-8"), dims, dtype""", """name.decode("utf-8"), dims[::-1], dtype"""),
            cause="The dims are reversed, as in real GGUF; this format keeps PyTorch's order: out, then in.",
            cure="Return the dims in the order in which they are stored.", see="`(3, 2)` where `(2, 3)` is expected"),
        Mistake("length instead of position", edit("(name_len,) = take", "first = position\n    (name_len,) = take").edit(
                "offset), position\n", "offset), position - first\n"
            ),
            cause="The second part of your result is the length of the descriptor, and the caller needs the position after it.",
            cure="Return the running position itself.", see="right at position 0, wrong elsewhere"),
        Mistake("read from the start", edit("    (name_len,) = take", "    position = 0\n    (name_len,) = take"),
            cause="The result is that of the descriptor at byte 0, whatever `position` is.",
            cure="Pass `position` to `struct.unpack_from` and move it along.",
            see="right at position 0, wrong elsewhere"),
        Mistake("name_len counts characters", edit(
                """(name,) = take(f"{name_len}s")""",
                """name = data[position:].decode("utf-8", "ignore")[:name_len].encode()\n    position += len(name)""",
            ),
            cause="The name has as many characters as name_len says, and name_len counts bytes: ö takes two.",
            cure="Slice the bytes first, and decode the slice.",
            see="ASCII names right, and one with an accent one character too long"),
        Mistake("32-bit n_dims", edit('take("<B")', 'take("<I")'),
            cause="n_dims was read as four bytes, as in real GGUF, and here it has one.",
            cure="Read it as `B`.", see="FormatError for good descriptors, or absurdly many dims"),
        Mistake("64-bit dims", edit('f"<{n_dims}I"', 'f"<{n_dims}Q"'),
            cause="Each dim was read as eight bytes, as in real GGUF, and here it has four.",
            cure="Read the dims as `I`.", see="scalars right, and FormatError or absurd dims for the rest"),
        Mistake("32-bit offset", edit('"<BQ"', '"<BI"'),
            cause="The offset was read as four bytes, and it has eight.",
            cure="Read it as `Q`.", see="the next position four too small"),
        Mistake("big-endian",
            edit("start, position = position", 'form = form.replace("<", ">")\n        start, position = position'),
            cause="The numbers were read with the most significant byte first.",
            cure="Begin each format with `<`.", see="FormatError for good descriptors, because name_len 1 became 256"),
        Mistake("end not checked", omit("if position > len(data)"),
            cause="Data that ends in the middle of a descriptor ends in an error of Python's own.",
            cure="Before each read compare the field's end with `len(data)`, and raise FormatError.",
            see="struct.error where FormatError is expected"),
        Mistake("off by one at the end", edit("position > len(data)", "position >= len(data)"),
            cause="A descriptor whose last byte is the file's last byte was refused, and it is complete.",
            cure="Compare with `>`: refuse only what ends after the last byte.",
            see="FormatError for a descriptor that ends with the file"),
        Mistake("dtype not checked", omit("if dtype > 3"),
            cause="A code that does not exist was accepted, and no reader can decode such a tensor.",
            cure="Raise FormatError for a dtype above 3.", see="dtype 4 accepted"),
        Mistake("bad UTF-8 not refused as such", edit("except UnicodeDecodeError", "except ZeroDivisionError"),
            cause="A name that is not UTF-8 ends in UnicodeDecodeError, and callers expect FormatError.",
            cure="Catch UnicodeDecodeError and raise FormatError.",
            see="UnicodeDecodeError where FormatError is expected"),
        Mistake("nothing refused", omit("if position > len(data)").edit("if dtype > 3", "if False").edit(
                "except UnicodeDecodeError", "except ZeroDivisionError"
            ),
            cause="A dtype above 3 is accepted; where data ends too early or the name is not UTF-8, Python raises its own error.",
            cure="Check the end before each read, the dtype, and the text of the name; raise FormatError yourself.",
            see="struct.error or UnicodeDecodeError where FormatError is expected, and dtype 4 accepted"),
        Mistake("dims as a list", edit("dims = take(f", "dims = list(take(f").edit("}I\")", "}I\"))"),
            cause="The dims are in a list, and the docstring promises a tuple.",
            cure="Wrap them in `tuple(...)`.", see="a list where a tuple is expected"),
        Mistake("signed offset", edit('"<BQ"', '"<Bq"'),
            cause="A very large offset comes out negative: it was read as a signed number.",
            cure="Read it as `Q`.", see="-1 where 18446744073709551615 is expected"),
        Mistake("spaces at the end of the name removed", edit('take(f"{name_len}s")', '(data[position : position + name_len].rstrip(b" "),)\n    position += name_len'),
            cause="Spaces at the end belong to the name, and they are missing.",
            cure='Take the bytes of the name as they are.', see='a name with spaces too short'),
        Mistake("dtype 4 accepted", edit("dtype > 3", "dtype > 4"),
            cause='The codes are 0 to 3, so 4 is none of them.',
            cure='Refuse a dtype above 3.', see='dtype 4 accepted'),
        Mistake("dtype 3 refused", edit("dtype > 3", "dtype >= 3"),
            cause='3 is a dtype: Q4_per_group_64.',
            cure='Refuse a dtype above 3.', see='FormatError for a Q4 tensor'),
        Mistake("signed dims", edit("f\"<{n_dims}I\"", "f\"<{n_dims}i\""),
            cause='Very large dims come out negative: they were read as signed numbers.',
            cure='Read them as `I`.', see='-1 where 4294967295 is expected'),
        Mistake("the name as bytes", edit("name.decode(\"utf-8\")", "name"),
            cause='The name must be text, and it is bytes.',
            cure='Decode it.', see="`b'w'` where `'w'` is expected"),
        Mistake("bad bytes replaced", edit("name.decode(\"utf-8\")", "name.decode(\"utf-8\", \"replace\")"),
            cause="Bytes that are not UTF-8 became U+FFFD, the replacement character, and the damage stays hidden.",
            cure='Let `decode` raise its error, and turn that into FormatError.', see='a name with replacement characters accepted'),
        Mistake("one flat tuple", edit("dtype, offset), position\n", "dtype, offset, position)\n"),
            cause='The result has five items; the docstring asks for two: a tuple of four, and the next position.',
            cure='Return `(name, dims, dtype, offset), position`.', see='five items where two are expected'),
        Mistake("next position forgotten", edit("dtype, offset), position\n", "dtype, offset)\n"),
            cause='The caller needs the position after the descriptor, too.',
            cure='Return `(name, dims, dtype, offset), position`.', see='four items where two are expected'),
        Mistake("next position one too small", edit("dtype, offset), position\n", "dtype, offset), position - 1\n"),
            cause='The next position is one too small: dtype and offset take nine bytes.',
            cure='Add 1 for dtype and 8 for offset.', see='next one too small'),
        Mistake("always two dims", edit("take(f\"<{n_dims}I\")", "take(\"<2I\")"),
            cause='Descriptors with two dims are read well, and no others: the number of dims is in n_dims.',
            cure='Read n_dims numbers.', see='right for matrices, wrong for a bias or a single number'),
        Mistake("padding slipped in", edit("take(\"<BQ\")", "take(\"BQ\")"),
            cause="Seven bytes were expected between dtype and offset: struct pads as a C compiler does if the format does not begin with `<`, `=`, `>` or `!`.",
            cure='Begin every format with `<`.', see='FormatError for good descriptors'),
        Mistake("Latin-1 instead of UTF-8", edit('"utf-8"', '"latin-1"'),
            cause="Each byte of the name became a character of its own, and ö in UTF-8 is two bytes.",
            cure='Decode with `.decode("utf-8")`.', see="`grÃ¶ss` where `gröss` is expected"),
    ),
)
