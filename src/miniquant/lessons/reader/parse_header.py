"""The first part of a file: the header."""

from __future__ import annotations

import struct
from typing import NamedTuple

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, body, edit, omit
from ..shared.by_hand import by_digits, number
from ..shared.gguf_lite_by_hand import header_oracle


def parse_header(data):
    """Read the header of a file.

    data: bytes of the whole file   ->   (n_tensors, metadata_len)

    Raises FormatError for fewer than 16 bytes, a magic other than 0x474C4654, a version other than 1, and metadata that
    would end behind the end of data.
    """
    if len(data) < 16:
        raise FormatError(f"the file has {len(data)} bytes, a header takes 16", field="header", offset=0)
    magic, version, n_tensors, metadata_len = struct.unpack_from("<4I", data, 0)
    if magic != 0x474C4654:
        raise FormatError(f"found {data[:4]!r}, a GGUF-lite file begins with b'TFLG'", field="header.magic", offset=0)
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


def oracle(data):
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


def cases(random):
    """Good headers, then every way to be malformed, then headers with random counts."""
    text = b"a=b\nc=d"
    good = [header_oracle(2, 0), header_oracle(0, 0), header_oracle(3, 7) + text, header_oracle(258, 3) + text]
    ours = header_oracle(1, 0)
    bad = [
        b"",
        ours[:15],
        bytes(16),
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


EXERCISE = Exercise(
    goal="Read the 16 bytes of the header, and raise FormatError for anything that is no GGUF-lite file of version 1.",
    reference=parse_header, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up",
    hints=(
        '`struct.unpack_from("<4I", data, 0)` gives four numbers, and raises struct.error if there are fewer than 16 bytes; so look at `len(data)` first.',
        "Four things raise FormatError: fewer than 16 bytes, another magic than 0x474C4654, another version than 1, and `16 + metadata_len > len(data)`.",
    ),
    why="a reader that stops at byte 0 of the wrong file never computes with rubbish.",
    mistakes=(
        Mistake("big-endian", edit("<4I", ">4I"),
            cause="The numbers were read with the most significant byte first, so no real file has the right magic.",
            cure="Begin the format with `<`.", see="FormatError for every good file"),
        Mistake("the magic as letters", edit("magic != 0x474C4654", 'data[:4] != b"GLFT"'),
            cause='On disk the magic is `54 46 4c 47`, "TFLG", because the number 0x474C4654 lies there backwards.',
            cure='Compare the number with 0x474C4654, or the bytes with b"TFLG".',
            see="FormatError for every good file, and GLFT accepted"),
        Mistake("the number compared with letters", edit("magic != 0x474C4654", 'magic != b"GLFT"'),
            cause='What `I` unpacks is a number, and a number never equals bytes such as b"GLFT", so every file is refused.',
            cure="Compare the number with the number 0x474C4654.", see="FormatError for every file, good or bad"),
        Mistake("unpack instead of unpack_from", edit('unpack_from("<4I", data, 0)', 'unpack("<4I", data)'),
            cause="`struct.unpack` wants exactly as many bytes as its format has, and data is the whole file.",
            cure='Use `struct.unpack_from("<4I", data, 0)`, or unpack `data[:16]`.',
            see="struct.error for every file that is longer than its header"),
        Mistake("magic not checked", omit("if magic"),
            cause="Any 16 bytes pass for a header as long as their version is 1.",
            cure="Compare the magic with 0x474C4654 before you use the other numbers.",
            see="a file that begins with GLFT accepted"),
        Mistake("version not checked", omit("if version"),
            cause="A file of version 2 may have another layout, and this reader would misread it.",
            cure="Refuse every version but 1.", see="version 2 accepted"),
        Mistake("length not checked", omit("if len(data) < 16"),
            cause="A file of fewer than 16 bytes makes struct raise its own error, which does not say what is wrong.",
            cure="Look at `len(data)` before you unpack.", see="struct.error where FormatError is expected"),
        Mistake("metadata_len believed", omit("if 16 + metadata_len"),
            cause="The header may announce more metadata than the file holds, and a slice past the end is silently short.",
            cure="Refuse the file if `16 + metadata_len > len(data)`.", see="a length of 4294967295 accepted"),
        Mistake("off by one at the end", edit("metadata_len > len(data)", "metadata_len >= len(data)"),
            cause="You compare with `>=`, and a file whose metadata is its last part is whole.",
            cure="Compare with `>`: refuse only what ends behind the last byte.",
            see="FormatError for a file that ends with its metadata"),
        Mistake("nothing refused", body('return struct.unpack_from("<8x2I", data)'),
            cause="The numbers are read and none of them is held against anything.",
            cure="Check length, magic, version and metadata_len, in this order.", see="this input must be refused"),
        Mistake("assert instead of raise", body("""
                assert len(data) >= 16
                magic, version, n_tensors, metadata_len = struct.unpack_from("<4I", data, 0)
                assert magic == 0x474C4654 and version == 1 and 16 + metadata_len <= len(data)
                return n_tensors, metadata_len
            """),
            cause="`assert` is for mistakes in a program; python -O removes it, and callers of a reader expect FormatError.",
            cure="Write `if …: raise FormatError(…)`.", see="AssertionError where FormatError is expected"),
        Mistake("counts swapped", edit("return n_tensors, metadata_len", "return metadata_len, n_tensors"),
            cause="The two counts were returned in the wrong order.",
            cure="Return `(n_tensors, metadata_len)`.", see="`(7, 3)` where `(3, 7)` is expected"),
    ),
)
