"""The exercise of lab 07 on the second part of a file: the metadata."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...core.errors import FormatError
from ...lab.spec import Case, Exercise, Mistake

# ---- parse_metadata --------------------------------------------------------------------------------------------------


def parse_metadata(block: bytes) -> dict:
    """The reference: the metadata's bytes -> a dict of strings."""
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"not valid UTF-8 ({error.reason})", field="metadata", offset=16 + error.start) from None
    metadata = {}
    for line in text.removesuffix("\n").split("\n") if text else []:
        key, equals, value = line.partition("=")
        if not key or not equals:
            raise FormatError(f"the line {line!r} is not key=value", field="metadata")
        if key in metadata:
            raise FormatError(f"the key {key!r} stands twice", field="metadata")
        metadata[key] = value
    return metadata


def parse_metadata_oracle(block: bytes) -> dict:
    """One byte at a time: a key until the first =, a value until the newline."""
    metadata, key, piece = {}, None, bytearray()
    for byte in block if not block or block[-1] == 0x0A else block + b"\n":
        if byte == 0x3D and key is None:
            key, piece = _as_text(piece), bytearray()
        elif byte == 0x0A:
            if key is None:
                raise FormatError(f"no = in the line {bytes(piece)!r}")
            if key == "":
                raise FormatError(f"nothing in front of the = in the line {b'=' + bytes(piece)!r}")
            if key in metadata:
                raise FormatError(f"the key {key!r} stands twice")
            metadata[key], key, piece = _as_text(piece), None, bytearray()
        else:
            piece.append(byte)
    return metadata


def _as_text(piece: bytearray) -> str:
    try:
        return str(bytes(piece), "utf-8")
    except UnicodeDecodeError:
        raise FormatError(f"{bytes(piece).hex(' ')} is no UTF-8") from None


def _metadata_cases(random: np.random.Generator) -> list[Case]:
    good = [
        b"a=b",
        b"dims_order=out,in\ngroup_size=64",
        b"",
        b"a=b\nc=d\n",
        b"rule=w=q*s\nx=",
        b"note= indented \nrate=0.50",
        "name=café\nold line=one\u2028two".encode(),
    ]
    bad = [b"a=b\nrubbish", b"=b", b"a=b\na=c", b"a=b\n\nc=d", b"name=\xff\xfe", b"a=caf\xe9"]
    words = ["".join(chr(c) for c in random.integers(97, 123, 6)) for _ in range(8)]
    return [(block,) for block in [*good, *bad, "\n".join(f"{w}={w[::-1]}=" for w in words).encode()]]


def _read(
    block: bytes, *, lines=None, split=None, final=True, skip=False, twice=False, code="utf-8", wrap=True, empty=True
) -> dict:
    """Right unless told otherwise; each switch is a mistake."""
    try:
        text = block.decode(code)
    except UnicodeDecodeError:
        if not wrap:
            raise
        raise FormatError("refused") from None
    text = text.removesuffix("\n") if final else text
    found = {}
    for line in (lines or (lambda t: t.split("\n")))(text) if text or not empty else []:
        key, equals, value = (split or (lambda line: line.partition("=")))(line)
        if not key or not equals:
            if skip:
                continue
            raise FormatError("refused")
        if key in found and not twice:
            raise FormatError("refused")
        found[key] = value
    return found


def _last_equals(line: str) -> tuple[str, str, str]:
    return line.rpartition("=")


def _every_equals(line: str) -> tuple[str, str, str]:
    parts = line.split("=")
    return parts[0], "=" * (len(parts) > 1), parts[-1] if len(parts) < 3 else parts[1]


def _unpacked(line: str) -> tuple[str, str, str]:
    key, value = line.split("=")  # raises ValueError unless there is exactly one
    return key, "=", value


def _as_numbers(block: bytes) -> dict:
    def converted(text: str) -> object:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
        return text

    return {key: converted(value) for key, value in _read(block).items()}


def _stripped(block: bytes) -> dict:
    return {key.strip(): value.strip() for key, value in _read(block).items()}


PARSE_METADATA = Exercise(
    name="parse_metadata",
    lab="07",
    goal="Turn the metadata's bytes back into a dict of strings, and raise FormatError for what is not key=value.",
    minutes=4,
    difficulty="core",
    reference=parse_metadata,
    oracle=parse_metadata_oracle,
    cases=_metadata_cases,
    hints=(
        'Decode the block, drop one final newline with `removesuffix("\\n")`, and split at `"\\n"`. An empty block is '
        "an empty dict.",
        '`key, equals, value = line.partition("=")` splits at the first `=`; raise FormatError if `key` or `equals` is '
        "empty, if the key stands twice, and where decoding fails.",
    ),
    why="a value may hold anything but a newline, and it comes back as it was written, to the last space.",
    mistakes=(
        Mistake(
            "split at every =",
            partial(_read, split=_every_equals),
            '`split("=")` cuts a value that holds `=`, and what follows its first piece is lost.',
            'Split at the first `=` only: `line.partition("=")`.',
            "`w` where `w=q*s` is expected",
        ),
        Mistake(
            "a second = refused",
            partial(_read, split=_unpacked),
            '`key, value = line.split("=")` fails on a value that holds `=`, and such a value is legal.',
            'Split at the first `=` only: `line.partition("=")`.',
            "`ValueError: too many values to unpack` for the line `rule=w=q*s`",
        ),
        Mistake(
            "split at the last =",
            partial(_read, split=_last_equals),
            "The line was cut at its last `=`, so a part of the value went to the key.",
            'Split at the first `=`: `line.partition("=")`, not `rpartition`.',
            "the key `rule=w`",
        ),
        Mistake(
            "final newline not tolerated",
            partial(_read, final=False),
            "A newline at the very end leaves an empty last line, and writers of other tools do end that way.",
            'Drop one final newline first: `text.removesuffix("\\n")`.',
            "an error for `a=b`, newline, `c=d`, newline",
        ),
        Mistake(
            "empty block refused",
            partial(_read, empty=False),
            '`"".split("\\n")` is a list with one empty string, and that is no line.',
            "Return an empty dict for an empty block.",
            "an error where `{}` is expected",
        ),
        Mistake(
            "rubbish skipped",
            partial(_read, skip=True),
            "A line without key and `=` was passed over, and the damage that it shows stays hidden.",
            "Raise FormatError for such a line.",
            "a line `rubbish` accepted",
        ),
        Mistake(
            "the later key wins",
            partial(_read, twice=True),
            "A key stands twice, and the second value replaced the first without a word.",
            "Raise FormatError if the key is in the dict already.",
            "`a=b`, `a=c` accepted",
        ),
        Mistake(
            "bad UTF-8 not refused as such",
            partial(_read, wrap=False),
            "decode raises UnicodeDecodeError, which says nothing about the file, and callers expect FormatError.",
            "Catch UnicodeDecodeError and raise FormatError.",
            "UnicodeDecodeError where FormatError is expected",
        ),
        Mistake(
            "Latin-1 instead of UTF-8",
            partial(_read, code="latin-1"),
            "Each byte became a character of its own, and é in UTF-8 is two bytes.",
            'Decode with `.decode("utf-8")`.',
            "`cafÃ©` where `café` is expected",
        ),
        Mistake(
            "split at every kind of line end",
            partial(_read, lines=str.splitlines),
            "`splitlines()` also splits at a dozen other characters, such as U+2028, which may stand in a value.",
            'Split at the newline alone: `split("\\n")`.',
            "an error for a value with U+2028 in it",
        ),
        Mistake(
            "values converted to numbers",
            _as_numbers,
            "The format has strings only, and who reads 0.50 as a number cannot give 0.50 back.",
            "Leave the values as they are; the caller knows which of them are numbers.",
            "`64` where `'64'` is expected",
        ),
        Mistake(
            "spaces stripped",
            _stripped,
            "`strip()` removes spaces that belong to the value.",
            "Leave the values as they are.",
            "`'indented'` where `' indented '` is expected",
        ),
    ),
)
