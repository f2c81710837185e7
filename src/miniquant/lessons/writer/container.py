"""The exercises of lab 06 on the first two parts of a file: header and metadata."""

from __future__ import annotations

import json
import struct
from functools import partial

import numpy as np

from ...formats.gguf_lite import file as gguf_io
from ...lab.compare import Fields, one_after_another
from ...lab.spec import Case, Exercise, Mistake
from ..shared.gguf_lite_by_hand import header_oracle

# ---- header_bytes ----------------------------------------------------------------------------------------------------


def header_bytes(n_tensors: int, metadata_len: int) -> bytes:
    """The reference: two counts -> the 16 bytes of the header."""
    return gguf_io.HEADER.pack(gguf_io.MAGIC, gguf_io.VERSION, n_tensors, metadata_len)


def header_fields(n_tensors: int, metadata_len: int) -> Fields:
    """Four numbers of four bytes."""
    names = ("magic", "version", "n_tensors", "metadata_len")
    return [(f"header.{name}", 4 * i, 4 * i + 4) for i, name in enumerate(names)]


def _header_cases(random: np.random.Generator) -> list[Case]:
    made = [(2, 5), (0, 0), (1, 258), (0x01020304, 0x05060708)]
    return [*made, *((int(a), int(b)) for a, b in random.integers(0, 2**32, (3, 2)))]


def _header(n_tensors: int, metadata_len: int, form: str = "<4I", first: bytes = b"") -> bytes:
    data = struct.pack(form, 0x474C4654, 1, n_tensors, metadata_len)
    return first + data[len(first) :]


HEADER_BYTES = Exercise(
    name="header_bytes",
    lab="06",
    goal="Write the first 16 bytes of a file: magic, version, number of tensors, length of the metadata.",
    minutes=3,
    difficulty="warm-up",
    reference=header_bytes,
    oracle=header_oracle,
    cases=_header_cases,
    fields=header_fields,
    hints=(
        "`struct.pack` takes a format and the numbers: `I` is an unsigned integer of four bytes, and a leading `<` "
        "means little-endian.",
        "The format is `<4I`, and the numbers are 0x474C4654, 1 and the two arguments, in that order.",
    ),
    why="a reader that sees these 16 bytes knows whose file it holds and how far the next part reaches.",
    mistakes=(
        Mistake(
            "big-endian",
            partial(_header, form=">4I"),
            "The most significant byte came first, and this format stores the least significant byte first.",
            "Begin the format with `<`.",
            "every number backwards: `47 4c 46 54` where `54 46 4c 47` is expected",
        ),
        Mistake(
            "the magic as letters",
            partial(_header, first=b"GLFT"),
            'The magic is a number, and a little-endian number lies backwards on disk: "TFLG".',
            "Pack 0x474C4654 as an `I` like the other three numbers.",
            "`47 4c 46 54` at the start, and the other numbers right",
        ),
        Mistake(
            "the magic of real GGUF",
            partial(_header, first=b"GGUF"),
            "The four letters GGUF announce the format of llama.cpp, and its readers would take this file for theirs.",
            "Use this format's own number, 0x474C4654.",
            "`47 47 55 46` at the start",
        ),
        Mistake(
            "counts swapped",
            lambda n_tensors, metadata_len: _header(metadata_len, n_tensors),
            "The length of the metadata stands where the number of tensors belongs.",
            "Write n_tensors third and metadata_len last.",
            "bytes 8 to 11 and 12 to 15 exchanged",
        ),
        Mistake(
            "64-bit counts",
            partial(_header, form="<2I2Q"),
            "Real GGUF counts with 64 bits, and this format with 32.",
            "Use `I` for all four numbers, so that the header has 16 bytes.",
            "24 bytes where 16 are expected",
        ),
        Mistake(
            "no version",
            lambda n_tensors, metadata_len: struct.pack("<3I", 0x474C4654, n_tensors, metadata_len),
            "The version is missing, so every later number stands four bytes too early.",
            "Write the number 1 between the magic and n_tensors.",
            "12 bytes where 16 are expected",
        ),
    ),
)

# ---- metadata_bytes --------------------------------------------------------------------------------------------------


def metadata_bytes(metadata: dict) -> bytes:
    """The reference: a dict of text and numbers -> key=value lines, UTF-8."""
    return gguf_io.encode_metadata(metadata)


def metadata_oracle(metadata: dict) -> bytes:
    """Byte by byte: a newline before every line but the first."""
    out = bytearray()
    for key, value in metadata.items():
        if key == "":
            raise ValueError("a key must have at least one character")
        if "=" in key:
            raise ValueError("a key that holds '=' cannot be told from its value")
        if "\n" in key or "\n" in str(value):
            raise ValueError("a newline would end the line in the middle")
        if out:
            out.append(0x0A)
        for character in [*key, "=", *str(value)]:
            out.extend(bytes(character, "utf-8"))
    return bytes(out)


def metadata_fields(metadata: dict) -> Fields:
    """A line each, the newline that separates it from the next included."""
    lines = metadata.items()
    return one_after_another((f"the line of {key!r}", len(f"{key}={value}".encode()) + 1) for key, value in lines)


def _metadata_cases(random: np.random.Generator) -> list[Case]:
    good = [
        {"a": "b"},
        {"dims_order": "out,in", "group_size": 64},
        {},
        {"name": "café"},
        {"rule": "w=q*s"},
        {"title": "a tiny model", "layers": 4, "rate": 0.5},
    ]
    bad = [{"w=q": "s"}, {"": "x"}, {"note": "two\nlines"}, {"two\nlines": "note"}]
    drawn = {f"key{i}": "".join(chr(c) for c in random.integers(97, 123, 6)) for i in range(5)}
    return [(case,) for case in [*good, *bad, drawn]]


def _lines(metadata: dict, end: str = "", join: str = "\n", sign: str = "=", code: str = "utf-8", show=str) -> bytes:
    for key, value in metadata.items():
        if not key or "=" in key or "\n" in f"{key}{value}":
            raise ValueError("refused")
    return (join.join(f"{key}{sign}{show(value)}" for key, value in metadata.items()) + end * bool(metadata)).encode(
        code
    )


def _unguarded(metadata: dict) -> bytes:
    return "\n".join(f"{key}={value}" for key, value in metadata.items()).encode()


def _asserted(metadata: dict) -> bytes:
    for key, value in metadata.items():
        assert key and "=" not in key and "\n" not in f"{key}{value}"  # what the mistake is about
    return _lines(metadata)


def _json(metadata: dict) -> bytes:
    _lines(metadata)
    return json.dumps(metadata).encode()


def _too_strict(metadata: dict) -> bytes:
    if any("=" in str(value) for value in metadata.values()):
        raise ValueError("refused")
    return _lines(metadata)


METADATA_BYTES = Exercise(
    name="metadata_bytes",
    lab="06",
    goal="Turn a dict into key=value lines joined by newlines, as UTF-8 bytes, and refuse what could not be read back.",
    minutes=4,
    difficulty="core",
    reference=metadata_bytes,
    oracle=metadata_oracle,
    cases=_metadata_cases,
    fields=metadata_fields,
    hints=(
        'Build one line for each item with `f"{key}={value}"`, join the lines with `"\\n"`, and encode the text once, '
        "at the end.",
        "A reader splits a line at its first `=`. Raise ValueError for an empty key, a key with `=` in it, and a "
        "newline in a key or in a value; an `=` in a value is fine.",
    ),
    why="these lines are what lets a reader rebuild the model from the file alone, with nothing sent beside it.",
    mistakes=(
        Mistake(
            "a newline after the last line",
            partial(_lines, end="\n"),
            "Newlines stand between the lines here, and you ended each line with one.",
            'Join the lines: `"\\n".join(lines)`.',
            "one byte `0a` too many at the end",
        ),
        Mistake(
            "nothing refused",
            _unguarded,
            "A key with `=` in it, or a newline anywhere, is written as if it could be read back.",
            "Look at each key and value first, and raise ValueError for what a reader would split in the wrong place.",
            "this input must be refused",
        ),
        Mistake(
            "text instead of bytes",
            lambda metadata: _lines(metadata).decode(),
            "The lines are right, and they are still text, whose length is not the number of bytes.",
            'End with `.encode("utf-8")`.',
            "`str` where bytes are expected",
        ),
        Mistake(
            "assert instead of raise",
            _asserted,
            "`assert` is for mistakes in a program; python -O removes it, and callers of a writer expect ValueError.",
            "Write `if …: raise ValueError(…)`.",
            "AssertionError where ValueError is expected",
        ),
        Mistake(
            "JSON",
            _json,
            "JSON is another text format, with braces, quotes and commas that a reader of lines does not expect.",
            "Write plain lines, `key=value`.",
            "`7b`, an opening brace, in the first byte",
        ),
        Mistake(
            "= refused in values",
            _too_strict,
            "You refuse a value that holds `=`, and a reader that splits at the first `=` has no trouble with it.",
            "Refuse `=` in keys only.",
            "a ValueError for `w=q*s`",
        ),
        Mistake(
            "quoted values",
            partial(_lines, show=partial(json.dumps, ensure_ascii=False)),
            "Text was written with quotation marks around it, as JSON or `repr` do.",
            "Use the text itself, `str(value)`.",
            "bytes `22` or `27` around the text",
        ),
        Mistake(
            "a colon instead of =",
            partial(_lines, sign=": "),
            "Key and value are separated by a colon and a space.",
            "Put a single `=` between them, with no spaces.",
            "`3a 20` where `3d` is expected",
        ),
        Mistake(
            "Windows line ends",
            partial(_lines, join="\r\n"),
            "The lines are joined by two characters, carriage return and newline.",
            'Join with `"\\n"`, and build bytes yourself rather than through a text file.',
            "`0d` before `0a`",
        ),
        Mistake(
            "Latin-1 instead of UTF-8",
            partial(_lines, code="latin-1"),
            "é became the single byte `e9`, and in UTF-8 it takes two, `c3 a9`.",
            'Encode with `.encode("utf-8")`.',
            "ASCII right, and `café` one byte too short",
        ),
    ),
)
