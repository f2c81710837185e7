"""The exercise of lab 07 on the first part of a file: the header."""

from __future__ import annotations

import struct
from functools import partial
from typing import NamedTuple

import numpy as np

from ...core.errors import FormatError
from ...lab.engine import Case, Exercise, Mistake
from ..writer.container import by_digits, header_oracle

# ---- parse_header ----------------------------------------------------------------------------------------------------


def parse_header(data: bytes) -> tuple[int, int]:
    """The reference: the bytes of a file -> (n_tensors, metadata_len)."""
    if len(data) < 16:
        raise FormatError(f"the file has {len(data)} bytes, a header takes 16", field="header", offset=0)
    magic, version, n_tensors, metadata_len = struct.unpack_from("<4I", data, 0)
    if magic != 0x474C4654:
        raise FormatError(f"found {magic:#x}, expected 0x474c4654", field="header.magic", offset=0)
    if version != 1:
        raise FormatError(f"found {version}, this reader knows version 1", field="header.version", offset=4)
    if 16 + metadata_len > len(data):
        found = f"found {metadata_len}, and {len(data) - 16} bytes follow the header"
        raise FormatError(found, field="header.metadata_len", offset=12)
    return n_tensors, metadata_len


class Counts(NamedTuple):
    """What a header announces."""

    n_tensors: int
    metadata_len: int


def number(data: bytes) -> int:
    """Little-endian by hand: each byte is a digit to the base 256, the smallest first.

    >>> number(b"\\x02\\x01")
    258
    """
    return sum(byte * 256**place for place, byte in enumerate(data))


def parse_header_oracle(data: bytes) -> Counts:
    """Compares the first eight bytes with what they must be; no ``struct``."""
    if len(data) < 16:
        raise FormatError(f"{len(data)} bytes are no header, which has 16")
    if data[:4] != bytes([0x54, 0x46, 0x4C, 0x47]):
        raise FormatError(f"the first four bytes are {data[:4].hex(' ')}, not 54 46 4c 47")
    if data[4:8] != bytes([1, 0, 0, 0]):
        raise FormatError(f"the version's bytes are {data[4:8].hex(' ')}, not 01 00 00 00")
    rest = len(data) - 16
    if number(data[12:16]) > rest:
        raise FormatError(f"{number(data[12:16])} bytes of metadata are announced, and {rest} follow")
    return Counts(number(data[8:12]), number(data[12:16]))


def _header_cases(random: np.random.Generator) -> list[Case]:
    text = b"a=b\nc=d"
    good = [header_oracle(2, 0), header_oracle(0, 0), header_oracle(3, 7) + text, header_oracle(258, 3) + text]
    ours, old = header_oracle(1, 0), bytes(16)
    bad = [
        b"",
        ours[:15],
        old,
        b"GLFT" + ours[4:],
        b"GGUF" + by_digits(3, 4) + bytes(8),
        struct.pack(">4I", 0x474C4654, 1, 1, 0),
        ours[:4] + by_digits(2, 4) + ours[8:],
        header_oracle(1, 8) + text,
        header_oracle(1, 2**32 - 1) + text,
    ]
    counts = random.integers(0, 200, (3, 2)).tolist()
    drawn = [header_oracle(n, size) + b"x" * (size + n) for n, size in counts]
    return [(data,) for data in [*good, *bad, *drawn]]


def _parsed(
    data: bytes, *, form="<4I", magic=True, version=True, short=True, room=True, strict=False, error=FormatError
) -> tuple[int, int]:
    """Right unless told otherwise; each switch is a mistake."""
    if short and len(data) < struct.calcsize(form):
        raise error("refused")
    found, version_found, n_tensors, metadata_len = struct.unpack_from(form, data, 0)
    rest = len(data) - struct.calcsize(form)
    if (magic and found != 0x474C4654) or (version and version_found != 1):
        raise error("refused")
    if room and (metadata_len >= rest if strict else metadata_len > rest):
        raise error("refused")
    return n_tensors, metadata_len


def _never(data: bytes) -> tuple[int, int]:
    raise FormatError("refused")


def _exactly_sixteen(data: bytes) -> tuple[int, int]:
    struct.unpack("<4I", data)  # raises struct.error for any other length
    return _parsed(data)


def _letters(data: bytes) -> tuple[int, int]:
    if data[:4] != b"GLFT":
        raise FormatError("refused")
    return _parsed(data, magic=False)


def _fields_swapped(data: bytes) -> tuple[int, int]:
    n_tensors, metadata_len = _parsed(data)
    return metadata_len, n_tensors


PARSE_HEADER = Exercise(
    name="parse_header",
    lab="07",
    goal="Read the 16 bytes of the header, and raise FormatError for anything that is no GGUF-lite file of version 1.",
    minutes=4,
    difficulty="warm-up",
    reference=parse_header,
    oracle=parse_header_oracle,
    cases=_header_cases,
    hints=(
        '`struct.unpack_from("<4I", data, 0)` gives four numbers, and raises struct.error if there are fewer than 16 '
        "bytes; so look at `len(data)` first.",
        "Four things raise FormatError: fewer than 16 bytes, another magic than 0x474C4654, another version than 1, "
        "and `16 + metadata_len > len(data)`.",
    ),
    why="a reader that stops at byte 0 of the wrong file never computes with rubbish.",
    mistakes=(
        Mistake(
            "big-endian",
            partial(_parsed, form=">4I"),
            "The numbers were read with the most significant byte first, so no real file has the right magic.",
            "Begin the format with `<`.",
            "FormatError for every good file",
        ),
        Mistake(
            "the magic as letters",
            _letters,
            'On disk the magic is `54 46 4c 47`, "TFLG", because the number 0x474C4654 lies there backwards.',
            'Compare the number with 0x474C4654, or the bytes with b"TFLG".',
            "FormatError for every good file, and GLFT accepted",
        ),
        Mistake(
            "the number compared with letters",
            _never,
            'What `I` unpacks is a number, and a number never equals bytes such as b"GLFT", so every file is refused.',
            "Compare the number with the number 0x474C4654.",
            "FormatError for every file, good or bad",
        ),
        Mistake(
            "unpack instead of unpack_from",
            _exactly_sixteen,
            "`struct.unpack` wants exactly as many bytes as its format has, and data is the whole file.",
            'Use `struct.unpack_from("<4I", data, 0)`, or unpack `data[:16]`.',
            "struct.error for every file that is longer than its header",
        ),
        Mistake(
            "magic not checked",
            partial(_parsed, magic=False),
            "Any 16 bytes pass for a header as long as their version is 1.",
            "Compare the magic with 0x474C4654 before you use the other numbers.",
            "a file that begins with GLFT accepted",
        ),
        Mistake(
            "version not checked",
            partial(_parsed, version=False),
            "A file of version 2 may have another layout, and this reader would misread it.",
            "Refuse every version but 1.",
            "version 2 accepted",
        ),
        Mistake(
            "length not checked",
            partial(_parsed, short=False),
            "A file of fewer than 16 bytes makes struct raise its own error, which does not say what is wrong.",
            "Look at `len(data)` before you unpack.",
            "struct.error where FormatError is expected",
        ),
        Mistake(
            "metadata_len believed",
            partial(_parsed, room=False),
            "The header may announce more metadata than the file holds, and a slice past the end is silently short.",
            "Refuse the file if `16 + metadata_len > len(data)`.",
            "a length of 4294967295 accepted",
        ),
        Mistake(
            "off by one at the end",
            partial(_parsed, strict=True),
            "You compare with `>=`, and a file whose metadata is its last part is whole.",
            "Compare with `>`: refuse only what ends behind the last byte.",
            "FormatError for a file that ends with its metadata",
        ),
        Mistake(
            "nothing refused",
            partial(_parsed, magic=False, version=False, room=False, short=False),
            "The numbers are read and none of them is held against anything.",
            "Check length, magic, version and metadata_len, in this order.",
            "this input must be refused",
        ),
        Mistake(
            "assert instead of raise",
            partial(_parsed, error=AssertionError),
            "`assert` is for mistakes in a program; python -O removes it, and callers of a reader expect FormatError.",
            "Write `if …: raise FormatError(…)`.",
            "AssertionError where FormatError is expected",
        ),
        Mistake(
            "counts swapped",
            _fields_swapped,
            "The two counts were returned in the wrong order.",
            "Return `(n_tensors, metadata_len)`.",
            "`(7, 3)` where `(3, 7)` is expected",
        ),
    ),
)
