"""The exercises of lab 11 on what every part of a file is made of: the header, and strings."""

from __future__ import annotations

import struct
from functools import partial

import numpy as np

from ...formats.gguf import metadata as gguf_metadata
from ...formats.gguf import read
from ...lab.compare import Fields
from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import by_digits

# ---- gguf_header -----------------------------------------------------------------------------------------------------


def gguf_header(n_tensors: int, n_kv: int) -> bytes:
    """The reference: two counts -> the 24 bytes of the header."""
    return read.HEADER.pack(read.MAGIC, read.VERSION, n_tensors, n_kv)


def header_oracle(n_tensors: int, n_kv: int) -> bytes:
    """The letters and the version are typed in, the counts are taken apart digit by digit."""
    return bytes.fromhex("47 47 55 46  03 00 00 00") + by_digits(n_tensors, 8) + by_digits(n_kv, 8)


def header_fields(n_tensors: int, n_kv: int) -> Fields:
    """Two parts of four bytes, two of eight."""
    return [
        ("header.magic", 0, 4),
        ("header.version", 4, 8),
        ("header.n_tensors", 8, 16),
        ("header.n_kv", 16, 24),
    ]


def _header_cases(random: np.random.Generator) -> list[Case]:
    made = [(2, 5), (0, 0), (1, 258), (0x0102030405060708, 3)]
    return [*made, *((int(a), int(b)) for a, b in random.integers(0, 2**40, (3, 2)))]


def _header(n_tensors: int, n_kv: int, magic: bytes = b"GGUF", form: str = "<IQQ", version: int = 3) -> bytes:
    return magic + struct.pack(form, version, n_tensors, n_kv)


GGUF_HEADER = Exercise(
    name="gguf_header",
    lab="11",
    goal="Write the first 24 bytes of a GGUF file: magic, version 3, number of tensors, number of key-values.",
    minutes=3,
    difficulty="warm-up",
    reference=gguf_header,
    oracle=header_oracle,
    cases=_header_cases,
    fields=header_fields,
    hints=(
        'The magic is four letters in reading order, `b"GGUF"`; the rest is one u32 and two u64.',
        '`b"GGUF" + struct.pack("<IQQ", 3, n_tensors, n_kv)`; the `<` also keeps `struct` from padding.',
    ),
    why="llama.cpp decides by these 24 bytes whether to read on.",
    mistakes=(
        Mistake(
            "the magic as a number",
            partial(_header, magic=b"FUGG"),
            'The letters were packed as the number 0x47475546, and a little-endian number lies backwards: "FUGG".',
            'Write the bytes `b"GGUF"` themselves.',
            "`46 55 47 47` at the start",
        ),
        Mistake(
            "the magic of GGUF-lite",
            partial(_header, magic=b"TFLG"),
            "The magic is still that of this course's own format.",
            'Begin with `b"GGUF"`.',
            "`54 46 4c 47` at the start",
        ),
        Mistake(
            "the version of GGUF-lite",
            partial(_header, version=1),
            "GGUF-lite is at version 1, and GGUF at version 3; llama.cpp refuses version 1.",
            "Write 3.",
            "`01` in byte 4",
        ),
        Mistake(
            "32-bit counts",
            lambda n_tensors, n_kv: _header(n_tensors % 2**32, n_kv % 2**32, form="<III"),
            "The counts take four bytes, as in GGUF-lite, and here eight.",
            "Pack both counts as `Q`.",
            "16 bytes where 24 are expected",
        ),
        Mistake(
            "counts swapped",
            lambda n_tensors, n_kv: _header(n_kv, n_tensors),
            "The number of key-values stands where the number of tensors belongs.",
            "Write n_tensors first, although the tensors come last.",
            "bytes 8 to 15 and 16 to 23 exchanged",
        ),
        Mistake(
            "big-endian",
            partial(_header, form=">IQQ"),
            "The most significant byte came first; such files exist, and this one says nowhere that it is one.",
            "Begin the format with `<`.",
            "`00 00 00 03` in bytes 4 to 7",
        ),
        Mistake(
            "padding slipped in",
            partial(_header, form="<IxxxxQQ"),
            "Without `<`, struct pads as a C compiler does, and puts four bytes between the version and the counts.",
            "Begin the format with `<`, which also switches padding off.",
            "28 bytes where 24 are expected",
        ),
    ),
)

# ---- gguf_string -----------------------------------------------------------------------------------------------------


def gguf_string(text: str) -> bytes:
    """The reference: text -> u64 length in bytes, then UTF-8."""
    return gguf_metadata.encode_string(text)


def string_oracle(text: str) -> bytes:
    """Character by character."""
    data = b"".join(bytes(character, "utf-8") for character in text)
    return by_digits(len(data), 8) + data


def string_fields(text: str) -> Fields:
    """The length, then the text."""
    return [("the length", 0, 8), ("the text", 8, 8 + len(text.encode()))]


def _string_cases(random: np.random.Generator) -> list[Case]:
    drawn = ["".join(chr(c) for c in random.integers(97, 123, n)) for n in (5, 70, 300)]
    return [(text,) for text in ("gpt2", "", "café", "Ġthe", "two\nlines", *drawn)]


def _string(text: str, form: str = "<Q", end: bytes = b"", code: str = "utf-8") -> bytes:
    data = text.encode(code, "replace") + end
    return struct.pack(form, len(data)) + data


GGUF_STRING = Exercise(
    name="gguf_string",
    lab="11",
    goal="Write a text as GGUF does: its length in bytes as a u64, then its UTF-8.",
    minutes=2,
    difficulty="warm-up",
    reference=gguf_string,
    oracle=string_oracle,
    cases=_string_cases,
    fields=string_fields,
    hints=(
        "Encode first, then count: the length is that of the bytes.",
        '`data = text.encode("utf-8")`, and `struct.pack("<Q", len(data)) + data`.',
    ),
    why="keys, texts, tokens and tensor names are all written like this.",
    mistakes=(
        Mistake(
            "the length counts characters",
            lambda text: struct.pack("<Q", len(text)) + text.encode(),
            "The length counts characters, and a reader needs bytes: é takes two in UTF-8.",
            "Encode the text first, and take `len` of the bytes.",
            "ASCII right, and `café` one too short",
        ),
        Mistake(
            "16-bit length",
            partial(_string, form="<H"),
            "The length takes two bytes, as a name's does in GGUF-lite, and here eight.",
            "Pack the length as `Q`.",
            "the text begins at byte 2",
        ),
        Mistake(
            "32-bit length",
            partial(_string, form="<I"),
            "The length takes four bytes, as it did in GGUF's first version, and here eight.",
            "Pack the length as `Q`.",
            "the text begins at byte 4",
        ),
        Mistake(
            "big-endian",
            partial(_string, form=">Q"),
            "The most significant byte of the length came first.",
            "Begin the format with `<`.",
            "the length in byte 7 instead of byte 0",
        ),
        Mistake(
            "no length",
            lambda text: text.encode(),
            "The text stands there without its length, and nobody can tell where it ends.",
            "Put `struct.pack('<Q', len(data))` in front.",
            "the text begins at byte 0",
        ),
        Mistake(
            "a zero byte at the end",
            partial(_string, end=b"\0"),
            "C ends a string with a zero byte, and here the length does that work.",
            "Write the bytes of the text and nothing after them.",
            "the length one too large, and `00` after the text",
        ),
        Mistake(
            "Latin-1 instead of UTF-8",
            partial(_string, code="latin-1"),
            "é became one byte, and in UTF-8 it takes two.",
            'Encode with `.encode("utf-8")`.',
            "ASCII right, and `café` one byte too short",
        ),
    ),
)
