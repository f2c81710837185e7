"""The first part of a file: the header."""

from __future__ import annotations

import struct
from typing import NamedTuple

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, body, edit, omit
from ..shared.by_hand import by_digits, number
from ..shared.gguf_lite_by_hand import header_oracle


def parse_header(data):
    """Read the header of a file: four u32, little-endian: magic, version,
    n_tensors, metadata_len; the metadata follows.

    data: bytes of the whole file
    ->   (n_tensors, metadata_len), a tuple of two integers

    Raises FormatError for fewer than 16 bytes, a magic other than
    0x474C4654, a version other than 1, and metadata that is not all there
    (it may end where data ends). Every n_tensors is accepted here.
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
    good += [header_oracle(2**32 - 1, 0), header_oracle(1, 300) + b"x" * 300]
    good += [header_oracle(1, 70_000) + b"x" * 70_010]
    ours = header_oracle(1, 0)
    bad = [
        b"",
        ours[:15],
        bytes(16),
        b"GLFT" + ours[4:],
        b"GGUF" + by_digits(3, 4) + bytes(8),
        struct.pack(">4I", 0x474C4654, 1, 1, 0),
        b"TFLg" + ours[4:],
        b"\0FLG" + ours[4:],
        b"TLFG" + ours[4:],
        b"GGUF" + by_digits(1, 4) + b"TFLG" + bytes(4),
        bytes(4) + ours,
        header_oracle(1, 2**16) + bytes(9),
        header_oracle(1, 2**24) + bytes(9),
        ours[:4] + by_digits(2, 4) + ours[8:],
        ours[:4] + by_digits(0, 4) + ours[8:],
        ours[:4] + by_digits(2**24 + 1, 4) + ours[8:],
        ours[:4] + by_digits(2**24, 4) + ours[8:],
        ours[:4] + by_digits(257, 4) + ours[8:],
        header_oracle(3, 7) + text[:6],  # the header of a good file, and one byte less
        header_oracle(1, 2**32 - 1) + text,
        header_oracle(0, 16),
    ]
    counts = random.integers(0, 200, (3, 2)).tolist()
    drawn = [header_oracle(n, size) + b"x" * (size + n) for n, size in counts]
    return [(data,) for data in [*good, *bad, *drawn]]


def places(data):
    """Where the four numbers stand."""
    return {"magic": (0, 4), "version": (4, 8), "n_tensors": (8, 12), "metadata_len": (12, 16)}


def traits(data):
    """What is wrong with a header, or special about it."""
    whole = len(data) >= 16
    ours, version = whole and data[:4] == b"TFLG", number(data[4:8])
    n_tensors, length, rest = number(data[8:12]), number(data[12:16]), len(data) - 16
    good = ours and version == 1
    return {
        "the file is empty": not data,
        "the file has fewer than 16 bytes": not whole,
        "the file has exactly 16 bytes": len(data) == 16,
        "the first four bytes are GLFT": data[:4] == b"GLFT",
        **{
            f"the file has 16 bytes or more, and {words}": whole and holds
            for words, holds in {
                "the magic is wrong": not ours,
                "the magic is wrong, and the version is 1": not ours and version == 1,
                "the magic and the version are wrong": not ours and version != 1,
                "the version is not 1": version != 1,
                "the magic is right, and the version is not 1": ours and version != 1,
                "the magic is right, and the version is 0": ours and version == 0,
                "the magic is right, and the version is 2 or more": ours and version > 1,
                "the magic is right, and the version is 256 or more": ours and version > 255,
                "the magic or the version is wrong": not good,
            }.items()
        },
        **{
            f"the file has 16 bytes or more, magic and version are right, and {words}": good and holds
            for words, holds in {
                "the metadata ends after the file": length > rest,
                "the metadata is one byte longer than what follows the header": length == rest + 1,
                "the metadata is longer than what follows the header, and not longer than the file": rest < length <= rest + 16,
                "metadata_len is larger than the whole file": length > len(data),
                "n_tensors is 0": n_tensors == 0,
                "n_tensors is 2**16 or more": n_tensors >= 2**16,
                "n_tensors is 2**31 or more": n_tensors >= 2**31,
                "metadata_len is 0": length == 0,
                "metadata_len is not 0": length > 0,
                "metadata_len is 2**16 or more": length >= 2**16,
                "metadata_len is 256 or more, and the metadata is all there": 256 <= length <= rest,
                "the metadata ends with the file": length == rest,
                "the metadata ends with the file, and is not empty": length == rest > 0,
                "bytes follow the metadata": length < rest,
            }.items()
        },
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Read the 16 bytes of the header, and raise FormatError for anything that is no GGUF-lite file of version 1.",
    reference=parse_header, oracle=oracle, cases=cases, places=places, minutes=4, difficulty="warm-up",
    hints=(
        "First make sure that there are 16 bytes. Then unpack them, and check what the docstring lists, one `if` each.",
        "`struct.unpack_from` unpacks from a position and does not mind what follows. The metadata ends at byte 16 + metadata_len; compare that with the number of bytes of the file.",
    ),
    why="a reader that stops at byte 0 of a wrong file never computes with wrong numbers.",
    mistakes=(
        Mistake("big-endian", edit("<4I", ">4I"),
            cause="Only files with the most significant byte first pass, so every real file is refused.",
            cure="Begin the format with `<`.", see="FormatError for every good file"),
        Mistake("the bytes of the magic in the other order", edit("magic != 0x474C4654", 'data[:4] != b"GLFT"'),
            cause='On disk the magic is `54 46 4c 47`, "TFLG": a little-endian number begins with its least significant byte.',
            cure='Compare the number with 0x474C4654, or the bytes with b"TFLG".',
            see="FormatError for every good file, and GLFT accepted"),
        Mistake("the number compared with letters", edit("magic != 0x474C4654", 'magic != b"GLFT"'),
            cause='Every file is refused, as if the number were compared with letters such as b"GLFT", which it never equals.',
            cure="Compare the number with the number 0x474C4654.", see="FormatError for every file, good or bad"),
        Mistake("unpack instead of unpack_from", edit('unpack_from("<4I", data, 0)', 'unpack("<4I", data)'),
            cause="`struct.unpack` takes 16 bytes here, no more and no fewer, and data is the whole file.",
            cure='Use `struct.unpack_from("<4I", data, 0)`, or unpack `data[:16]`.',
            see="struct.error for every file that is longer than its header"),
        Mistake("magic not checked", omit("if magic"),
            cause="Files with another magic were accepted.",
            cure="Compare the magic with 0x474C4654 before you use the other numbers.",
            see="a file that begins with GLFT accepted"),
        Mistake("version not checked", omit("if version"),
            cause="Other versions were accepted; they may have another layout, and this reader would misread them.",
            cure="Refuse every version but 1.", see="version 2 accepted"),
        Mistake("length not checked", omit("if len(data) < 16"),
            cause="A file of fewer than 16 bytes ends in an error of struct's own, and callers expect FormatError.",
            cure="Look at `len(data)` before you unpack.", see="struct.error where FormatError is expected"),
        Mistake("metadata_len believed", omit("if 16 + metadata_len"),
            cause="A header that announces more metadata than the file holds was accepted.",
            cure="Refuse the file if `16 + metadata_len > len(data)`.", see="a length of 4294967295 accepted"),
        Mistake("off by one at the end", edit("metadata_len > len(data)", "metadata_len >= len(data)"),
            cause="A file that ends where its metadata ends was refused; its metadata is all there.",
            cure="Compare with `>`: refuse only what ends after the last byte.",
            see="FormatError for a file that ends with its metadata"),
        Mistake("nothing refused", body('return struct.unpack_from("<8x2I", data)'),
            cause="No bad file is refused; one of fewer than 16 bytes ends in an error of struct's own.",
            cure="Check length, magic, version and metadata_len, in this order.", see="this input must be refused"),
        Mistake("assert instead of raise", body("""
                assert len(data) >= 16
                magic, version, n_tensors, metadata_len = struct.unpack_from("<4I", data, 0)
                assert magic == 0x474C4654 and version == 1 and 16 + metadata_len <= len(data)
                return n_tensors, metadata_len
            """),
            cause="`python -O` removes an `assert`, and callers of a reader expect FormatError.",
            cure="Write `if …: raise FormatError(…)`.", see="AssertionError where FormatError is expected"),
        Mistake("signed numbers", edit("<4I", "<4i"),
            cause="A large count or length comes out negative: it was read as signed.",
            cure="Use `I`, the letter of an unsigned u32.", see="-1 where 4294967295 is expected"),
        Mistake("one byte of the version", edit("if version != 1", "if data[4] != 1"),
            cause="The version takes four bytes, and only the first of them counts in your function.",
            cure="Compare the whole u32 with 1.", see="version 257 accepted"),
        Mistake("header left out of the length", edit("if 16 + metadata_len", "if metadata_len"),
            cause="Metadata that ends up to 16 bytes after the file was accepted: it begins after the header, at byte 16.",
            cure="Compare `16 + metadata_len` with `len(data)`.", see="metadata that ends after the file accepted"),
        Mistake("version and metadata_len not checked", omit("if version").edit("if 16 + metadata_len > len(data)", "if False"),
            cause='Two checks are missing: the version, and the end of the metadata.',
            cure='Check each thing that the docstring lists.', see='version 2 accepted, and metadata that ends after the file'),
        Mistake("magic and version not checked", omit("if magic").edit("if version != 1", "if False"),
            cause='Two checks are missing: the magic and the version.',
            cure='Check each thing that the docstring lists.', see='other formats and other versions accepted'),
        Mistake("magic and metadata_len not checked", omit("if magic").edit("if 16 + metadata_len > len(data)", "if False"),
            cause='Two checks are missing: the magic, and the end of the metadata.',
            cure='Check each thing that the docstring lists.', see='other formats accepted, and metadata that ends after the file'),
        Mistake("fewer than 16 bytes unpacked", omit("if len(data) < 16").edit("unpack_from(\"<4I\", data, 0)", "unpack(\"<4I\", data[:16])"),
            cause="A file of fewer than 16 bytes ends in an error of struct's own.",
            cure='Look at `len(data)` before you unpack.', see='struct.error where FormatError is expected'),
        Mistake("a header alone refused", edit("len(data) < 16", "len(data) <= 16"),
            cause="16 bytes are enough: a file may be a header alone.",
            cure='Refuse fewer than 16 bytes only.', see='FormatError for a file of 16 bytes'),
        Mistake("bytes after the metadata refused", edit("16 + metadata_len > len(data)", "16 + metadata_len != len(data)"),
            cause='Descriptors and data follow the metadata, so the file may be larger.',
            cure='Refuse metadata that ends after the file, with `>`.', see='FormatError for a file with something after its metadata'),
        Mistake("only later versions refused", edit("version != 1", "version > 1"),
            cause='Version 0 is not version 1 either.',
            cure='Compare with `!=`.', see='version 0 accepted'),
        Mistake("only earlier versions refused", edit("version != 1", "version < 1"),
            cause='A later version may have another layout.',
            cure='Compare with `!=`.', see='version 2 accepted'),
        Mistake("all four numbers returned", edit("return n_tensors, metadata_len", "return magic, version, n_tensors, metadata_len"),
            cause='The caller needs two numbers: n_tensors and metadata_len.',
            cure='Return these two.', see='four items where two are expected'),
        Mistake("a list", edit("return n_tensors, metadata_len", "return [n_tensors, metadata_len]"),
            cause='The result is a list, and the docstring promises a tuple.',
            cure='Return `n_tensors, metadata_len`.', see='a list where a tuple is expected'),
        Mistake("no tensors refused", edit("if version != 1", "if n_tensors == 0 or version != 1"),
            cause='A file without tensors is legal.',
            cure='Accept every n_tensors.', see='FormatError for a file with no tensors'),
        Mistake("counts swapped", edit("return n_tensors, metadata_len", "return metadata_len, n_tensors"),
            cause="The two counts were returned in the wrong order.",
            cure="Return `(n_tensors, metadata_len)`.", see="`(7, 3)` where `(3, 7)` is expected"),
    ),
)
