"""Every byte of a model file has a name: the fields of a file in order, each byte in exactly one of them.

Works on malformed files too: what can be named is named, the rest is one field called "unread", and the error is the
one that the reader itself raises. Each format's folder names its own bytes, and the registry knows them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from ..core.errors import FormatError
from ..core.reading import MappedFile, label_of, open_regular
from ..core.reading import Source as Given
from ..core.slices import Bytes, Slices
from .field import Field
from .file import Beside
from .registry import HEAD, Format, format_of_bytes, formats

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
    data = given if isinstance(given, Slices) else load(given)
    format = format_of_bytes(bytes(data[:HEAD])) or formats()[OTHERWISE]
    error = _error_of(given, beside or {}, format)
    named = format.fields(data, given, beside or {}) if format.fields else _tensors(data, given, format)
    found: list[Field] = []
    for part in named:
        if error and part.category != "header" and part.start > (error.offset or 0) and not _about_data(error):
            break
        found.append(part)
    return _with_gaps(found, data, error), error


def load(source: Source) -> np.ndarray:
    """The bytes of a file, or the bytes themselves: (n,) uint8; large files are mapped, not read."""
    given = given_of(source)
    if isinstance(given, bytes | bytearray | memoryview | Slices):
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
        else:
            format.open(source, beside).close()
    except FormatError as error:
        return FormatError(error.message, field=error.field, offset=error.offset)
    return None


def _tensors(data: Bytes, source: Given, format: Format) -> Iterator[Field]:
    """Of a format whose bytes nobody has named yet: where the tensors lie, and what is between them."""
    try:
        with format.open(source, {}) as file:
            infos = [(file.data_start + info.offset, info) for info in file.tensors.values() if info.n_bytes]
    except FormatError:
        return
    at = 0
    for start, info in sorted(infos, key=lambda item: item[0]):
        if start > at:
            yield Field(
                "header and names", at, start, "metadata", f"{format.title} names its tensors here", data[at:start]
            )
        at = start + info.n_bytes
        what = info.dtype.description
        yield Field(f"tensor {info.name[:60]!r}: data", start, at, "values", what, data[start:at])
    if at < data.size:
        yield Field("the end", at, data.size, "metadata", "what comes after the last tensor", data[at:])


def _about_data(error: FormatError) -> bool:
    """Whether all descriptors were read, and only where a tensor's data lies, or what is in it, is wrong."""
    field = error.field or ""
    places = field.startswith("tensor ") and field.endswith((": offset", ": scales"))
    return places or field == "header.checksum"


def _with_gaps(found: list[Field], data: Bytes, error: FormatError | None) -> list[Field]:
    """The fields, and what lies between and after them."""
    whole, at = [], 0
    for part in [*found, None]:
        end = data.size if part is None else part.start
        if end > at and error:
            whole.append(Field("unread", at, end, "unread", "a reader stops before it gets here", data[at:end]))
        elif end > at:
            whole.append(Field("padding", at, end, "padding", "no tensor claims these bytes", data[at:end]))
        if part is not None:
            whole.append(part)
            at = part.end
    return whole
