"""The exercise of lab 07 on the third part of a file: the descriptors."""

from __future__ import annotations

import struct
from functools import partial
from typing import NamedTuple

import numpy as np

from ...core.errors import FormatError
from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import number
from ..shared.gguf_lite_by_hand import descriptor_oracle


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


# ---- parse_descriptor ------------------------------------------------------------------------------------------------


def parse_descriptor(data: bytes, position: int) -> tuple:
    """The reference: one descriptor that begins at ``position`` -> ((name, dims, dtype, offset), the next position)."""

    def take(form: str) -> tuple[int, ...]:
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
    except UnicodeDecodeError as error:
        raise FormatError(f"the name is not valid UTF-8 ({error.reason})", field="descriptor: name") from None


def parse_descriptor_oracle(data: bytes, position: int) -> Parsed:
    """Takes bytes from the front of a list, and fails when it is empty."""
    left = list(data[position:])

    def take(count: int, field: str) -> bytes:
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


def _parse_cases(random: np.random.Generator) -> list[Case]:
    small = descriptor_oracle("w", (2, 3), 1, 8)
    good = [
        (small, 0),
        (b"\xee" * 5 + small + b"\xee" * 20, 5),
        (descriptor_oracle("bias", (3,), 0, 0) + small, 0),
        (descriptor_oracle("s", (), 0, 16), 0),
        (descriptor_oracle("gröss", (2, 64), 3, 258), 0),
        (b"front" + descriptor_oracle("n" * 300, (1, 2, 3, 4), 2, 0x0102030405), 5),
    ]
    cuts = [(small[:cut], 0) for cut in (0, 1, 2, 3, 9, 12, len(small) - 1)]
    bad_name = bytes([2, 0, 0xFF, 0xFE]) + small[3:]
    big_endian = struct.pack(">H1sB2IBQ", 1, b"w", 2, 2, 3, 1, 8)
    bad = [*cuts, (big_endian, 0), (small[:12] + b"\x04" + small[13:], 0), (bad_name, 0), (b"front" + small[:-1], 5)]
    drawn = random.integers(1, 2**20, (3, 3)).tolist()
    return [*good, *bad, *((descriptor_oracle(f"layers.{i}", (a, b), i, c), 0) for i, (a, b, c) in enumerate(drawn))]


def _parsed(
    data: bytes,
    position: int,
    *,
    order="<",
    name_len="H",
    n_dims="B",
    dim="I",
    at="Q",
    checked=True,
    strict=False,
    dtypes=True,
    code="utf-8",
    wrap=True,
    characters=False,
) -> tuple:
    """Right unless told otherwise; each switch is a mistake."""

    def take(form: str) -> tuple[int, ...]:
        nonlocal position
        start, position = position, position + struct.calcsize(order + form)
        if checked and (position >= len(data) if strict and form == "B" + at else position > len(data)):
            raise FormatError("refused")
        return struct.unpack_from(order + form, data, start)

    (length,) = take(name_len)
    if characters:
        name = data[position:].decode("utf-8", "ignore")[:length]
        position += len(name)
    else:
        if checked and position + length > len(data):
            raise FormatError("refused")
        try:
            name = data[position : position + length].decode(code)
        except UnicodeDecodeError:
            if not wrap:
                raise
            raise FormatError("refused") from None
        position += length
    (count,) = take(n_dims)
    dims = take(f"{count}{dim}")
    dtype, offset = take("B" + at)
    if dtypes and dtype > 3:
        raise FormatError("refused")
    return (name, dims, dtype, offset), position


def _reversed_dims(data: bytes, position: int) -> tuple:
    (name, dims, dtype, offset), position = _parsed(data, position)
    return (name, dims[::-1], dtype, offset), position


def _length_returned(data: bytes, position: int) -> tuple:
    found, end = _parsed(data, position)
    return found, end - position


def _from_the_start(data: bytes, position: int) -> tuple:
    return _parsed(data, 0)


PARSE_DESCRIPTOR = Exercise(
    name="parse_descriptor",
    lab="07",
    goal="Read the descriptor that begins at a position, and say where the next one begins.",
    minutes=7,
    difficulty="core",
    reference=parse_descriptor,
    oracle=parse_descriptor_oracle,
    cases=_parse_cases,
    hints=(
        "Keep one running `position`, and after each field move it by the field's size: 2, name_len, 1, 4 × n_dims, 9. "
        "Before each read, raise FormatError if the field ends behind `len(data)`.",
        'With a helper `take(form)` that checks, unpacks and moves on, five calls do it: `"<H"`, `f"{name_len}s"`, '
        '`"<B"`, `f"<{n_dims}I"`, `"<BQ"`. Refuse a dtype above 3 and a name that is not UTF-8.',
    ),
    why="descriptors have no fixed length, so the only way to the third one leads through the first two.",
    mistakes=(
        Mistake(
            "dims reversed",
            _reversed_dims,
            "The dims were turned around, as for real GGUF, and this format keeps PyTorch's order: out, then in.",
            "Return the dims in the order in which they are stored.",
            "`(3, 2)` where `(2, 3)` is expected",
        ),
        Mistake(
            "length instead of position",
            _length_returned,
            "You returned how long the descriptor is, and the caller needs the position behind it.",
            "Return the running position itself.",
            "right at position 0, wrong elsewhere",
        ),
        Mistake(
            "read from the start",
            _from_the_start,
            "`position` was ignored, and the descriptor was read from byte 0.",
            "Pass `position` to `struct.unpack_from` and move it along.",
            "right at position 0, wrong elsewhere",
        ),
        Mistake(
            "name_len counts characters",
            partial(_parsed, characters=True),
            "name_len counts bytes, and you took as many characters: ö takes two bytes.",
            "Slice the bytes first, and decode the slice.",
            "ASCII names right, and one with an accent one character too long",
        ),
        Mistake(
            "32-bit n_dims",
            partial(_parsed, n_dims="I"),
            "n_dims was read as four bytes, as in real GGUF, and here it has one.",
            "Read it as `B`.",
            "FormatError for good descriptors, or absurdly many dims",
        ),
        Mistake(
            "64-bit dims",
            partial(_parsed, dim="Q"),
            "Each dim was read as eight bytes, as in real GGUF, and here it has four.",
            "Read the dims as `I`.",
            "scalars right, and FormatError or absurd dims for the rest",
        ),
        Mistake(
            "32-bit offset",
            partial(_parsed, at="I"),
            "The offset was read as four bytes, and it has eight.",
            "Read it as `Q`.",
            "the next position four too small",
        ),
        Mistake(
            "big-endian",
            partial(_parsed, order=">"),
            "The numbers were read with the most significant byte first.",
            "Begin each format with `<`.",
            "FormatError for good descriptors, because name_len 1 became 256",
        ),
        Mistake(
            "end not checked",
            partial(_parsed, checked=False),
            "A file may end in the middle of a descriptor; a slice is then silently short, and struct raises its "
            "own error.",
            "Before each read compare the field's end with `len(data)`, and raise FormatError.",
            "struct.error where FormatError is expected",
        ),
        Mistake(
            "off by one at the end",
            partial(_parsed, strict=True),
            "You compare with `>=`, and a descriptor whose last byte is the file's last byte is whole.",
            "Compare with `>`: refuse only what ends behind the last byte.",
            "FormatError for a descriptor that ends with the file",
        ),
        Mistake(
            "dtype not checked",
            partial(_parsed, dtypes=False),
            "A code that does not exist was accepted, and nobody can decode such a tensor.",
            "Raise FormatError for a dtype above 3.",
            "dtype 4 accepted",
        ),
        Mistake(
            "bad UTF-8 not refused as such",
            partial(_parsed, wrap=False),
            "decode raises UnicodeDecodeError, which says nothing about the file, and callers expect FormatError.",
            "Catch UnicodeDecodeError and raise FormatError.",
            "UnicodeDecodeError where FormatError is expected",
        ),
        Mistake(
            "Latin-1 instead of UTF-8",
            partial(_parsed, code="latin-1"),
            "Each byte of the name became a character of its own, and ö in UTF-8 is two bytes.",
            'Decode with `.decode("utf-8")`.',
            "`grÃ¶ss` where `gröss` is expected",
        ),
    ),
)
