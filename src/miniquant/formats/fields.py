"""Every byte of a model file has a name: the fields of a file in order, each byte in exactly one of them.

Works on malformed files too: what can be named is named, the rest is one field called "unread", and the error is the
one that the reader itself raises. Each format's folder names its own bytes, and the registry knows them all.
"""

from __future__ import annotations

import os

import numpy as np

from ..core.errors import FormatError
from ..core.reading import MappedFile, label_of, open_regular
from ..core.reading import Source as Given
from .field import Field
from .file import Beside
from .registry import Format, format_of_bytes, formats

Source = Given | MappedFile
IN_MEMORY = 1 << 26  # a file up to 64 MiB is read, a larger one is mapped
OTHERWISE = "gguf-lite"  # how bytes of no known format are read: a first file often has its magic wrong


def fields(source: Source, beside: Beside | None = None) -> list[Field]:
    """Name every byte of a file (a path, bytes, or an open file), in the order of the file.

    beside: for bytes, what lies beside the file, by name: a bump file's ``config.json`` names its tensors.
    Never raises for a malformed file: what cannot be named is then a field "unread".
    Raises ``OSError`` if it cannot be opened, ``FormatError`` if it is a pipe or a device.
    """
    return parse(source, beside)[0]


def parse(source: Source, beside: Beside | None = None) -> tuple[list[Field], FormatError | None]:
    """``fields`` and, for a malformed file, the error with which its reader stops (without the path)."""
    given = given_of(source)
    data = load(source)
    format = format_of_bytes(bytes(data[:16]))
    if format is None or format.fields is None:
        format = formats()[OTHERWISE]
    error = _error_of(given, beside or {}, format)
    found: list[Field] = []
    for part in format.fields(data, given, beside or {}) if format.fields else ():
        if error and part.category != "header" and part.start > (error.offset or 0) and not _about_data(error):
            break
        found.append(part)
    return _with_gaps(found, data, error), error


def load(source: Source) -> np.ndarray:
    """The bytes of a file, or the bytes themselves: (n,) uint8; large files are mapped, not read."""
    given = given_of(source)
    if isinstance(given, bytes | bytearray | memoryview):
        return np.frombuffer(bytes(given), np.uint8)
    with open_regular(given) as file:
        if os.fstat(file.fileno()).st_size > IN_MEMORY:
            return np.memmap(file, np.uint8, "r").view(np.ndarray)
        return np.frombuffer(file.read(), np.uint8)


def given_of(source: Source) -> Given:
    """What a file was opened from: its path or its bytes. What is no open file is returned as it is."""
    return source.source if isinstance(source, MappedFile) else source


def name_of(source: Source, otherwise: str = "bytes") -> str:
    """A file's name without its folder: what a picture calls it, the same on every machine."""
    return label_of(given_of(source), otherwise)


def _error_of(source: Given, beside: Beside, format: Format) -> FormatError | None:
    try:
        if format.check is not None:
            format.check(source, beside)
    except FormatError as error:
        message = str(error).removeprefix(f"{error.path}: ")
        where = f"{error.field or ''} at byte {error.offset}: ".lstrip()
        return FormatError(message.removeprefix(where), field=error.field, offset=error.offset)
    return None


def _about_data(error: FormatError) -> bool:
    """Whether all descriptors were read, and only where a tensor's data lies, or what is in it, is wrong."""
    field = error.field or ""
    places = field.startswith("tensor ") and field.endswith((": offset", ": scales"))
    return places or field == "header.checksum"


def _with_gaps(found: list[Field], data: np.ndarray, error: FormatError | None) -> list[Field]:
    """The fields, and what lies between and after them."""
    whole, at = [], 0
    for part in [*found, None]:
        end = len(data) if part is None else part.start
        if end > at and error:
            whole.append(Field("unread", at, end, "unread", "a reader stops before it gets here", data[at:end]))
        elif end > at:
            whole.append(Field("padding", at, end, "padding", "no tensor claims these bytes", data[at:end]))
        if part is not None:
            whole.append(part)
            at = part.end
    return whole
