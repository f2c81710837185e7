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

    data: bytes of the whole file; position: integer   ->   ((name, dims, dtype, offset), next): text, tuple, code, integer,
    and the position of the first byte behind the descriptor

    Raises FormatError if the file ends before the descriptor does, for a name that is not UTF-8, and for a dtype above 3.
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
    """A descriptor and the position behind it."""

    descriptor: Descriptor
    next: int


def oracle(data, position):
    """Takes bytes from the front of a list, and fails when it is empty."""
    left = list(data[position:])

    def take(count, field):
        if len(left) < count:
            raise FormatError(f"{field} needs {count} bytes, and the file ends after {len(left)}")
        return bytes(left.pop(0) for _ in range(count))

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
        (descriptor_oracle("s", (), 0, 16), 0),
        (descriptor_oracle("gröss", (2, 64), 3, 258), 0),
        (descriptor_oracle("unsigned", (2**32 - 1, 2**31), 1, 2**63), 0),
        (descriptor_oracle("d", (1,) * 200, 0, 0), 0),
        (descriptor_oracle("n" * 40_000, (), 0, 0), 0),
        (b"front" + descriptor_oracle("n" * 300, (1, 2, 3, 4), 2, 0x0102030405), 5),
    ]
    cuts = [(small[:cut], 0) for cut in (0, 1, 2, 3, 9, 12, len(small) - 1)]
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


EXERCISE = Exercise(
    goal="Read the descriptor that begins at a position, and say where the next one begins.",
    reference=parse_descriptor, oracle=oracle, cases=cases, minutes=7, difficulty="core",
    hints=(
        "Keep one running `position`, and after each field move it by the field's size: 2, name_len, 1, 4 × n_dims, 9. Before each read, raise FormatError if the field ends behind `len(data)`.",
        'With a helper `take(form)` that checks, unpacks and moves on, five calls do it: `"<H"`, `f"{name_len}s"`, `"<B"`, `f"<{n_dims}I"`, `"<BQ"`. Refuse a dtype above 3 and a name that is not UTF-8.',
    ),
    why="descriptors have no fixed length, so the only way to the third one leads through the first two.",
    mistakes=(
        Mistake("dims reversed",
            edit("""name.decode("utf-8"), dims, dtype""", """name.decode("utf-8"), dims[::-1], dtype"""),
            cause="The dims were turned around, as for real GGUF, and this format keeps PyTorch's order: out, then in.",
            cure="Return the dims in the order in which they are stored.", see="`(3, 2)` where `(2, 3)` is expected"),
        Mistake("length instead of position", edit("(name_len,) = take", "first = position\n    (name_len,) = take").edit(
                "offset), position\n", "offset), position - first\n"
            ),
            cause="You returned how long the descriptor is, and the caller needs the position behind it.",
            cure="Return the running position itself.", see="right at position 0, wrong elsewhere"),
        Mistake("read from the start", edit("    (name_len,) = take", "    position = 0\n    (name_len,) = take"),
            cause="`position` was ignored, and the descriptor was read from byte 0.",
            cure="Pass `position` to `struct.unpack_from` and move it along.",
            see="right at position 0, wrong elsewhere"),
        Mistake("name_len counts characters", edit(
                """(name,) = take(f"{name_len}s")""",
                """name = data[position:].decode("utf-8", "ignore")[:name_len].encode()\n    position += len(name)""",
            ),
            cause="name_len counts bytes, and you took as many characters: ö takes two bytes.",
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
            cause="A file may end in the middle of a descriptor; a slice is then silently short, and struct raises its own error.",
            cure="Before each read compare the field's end with `len(data)`, and raise FormatError.",
            see="struct.error where FormatError is expected"),
        Mistake("off by one at the end", edit("position > len(data)", "position >= len(data)"),
            cause="You compare with `>=`, and a descriptor whose last byte is the file's last byte is whole.",
            cure="Compare with `>`: refuse only what ends behind the last byte.",
            see="FormatError for a descriptor that ends with the file"),
        Mistake("dtype not checked", omit("if dtype > 3"),
            cause="A code that does not exist was accepted, and nobody can decode such a tensor.",
            cure="Raise FormatError for a dtype above 3.", see="dtype 4 accepted"),
        Mistake("bad UTF-8 not refused as such", edit("except UnicodeDecodeError", "except ZeroDivisionError"),
            cause="decode raises UnicodeDecodeError, which says nothing about the file, and callers expect FormatError.",
            cure="Catch UnicodeDecodeError and raise FormatError.",
            see="UnicodeDecodeError where FormatError is expected"),
        Mistake("Latin-1 instead of UTF-8", edit('"utf-8"', '"latin-1"'),
            cause="Each byte of the name became a character of its own, and ö in UTF-8 is two bytes.",
            cure='Decode with `.decode("utf-8")`.', see="`grÃ¶ss` where `gröss` is expected"),
    ),
)
