"""What the readers share: a file that is mapped and not loaded (or bytes), and checked before it is believed.

A reader of a format is a child of ``MappedFile``. It reads its own header and entries, with ``_take`` and ``_text``,
fills ``tensors`` and ``data_start``, and has ``_check_places`` look over where the tensors lie.
"""

from __future__ import annotations

import codecs
import errno
import mmap
import os
import stat
import struct
from collections.abc import Iterable
from typing import Any, BinaryIO, Self

import numpy as np

from .errors import FormatError
from .slices import Slices, stretch

TEXT_PIECE = 2**16  # bytes
# a file by its path, what is in it, or what reads it by slices
Source = str | os.PathLike[str] | bytes | bytearray | memoryview | Slices


def path_of(source: Source) -> str | None:
    """The path of a file; ``None`` for bytes."""
    return None if isinstance(source, bytes | bytearray | memoryview | Slices) else os.fsdecode(source)


def label_of(source: Source, otherwise: str = "bytes") -> str:
    """A file's name without its folder: what a picture calls it, the same on every machine."""
    if isinstance(source, Slices):
        return source.name
    path = path_of(source)
    return otherwise if path is None else os.path.basename(path)


def as_bytes(source: bytes | bytearray | memoryview | Slices) -> memoryview:
    """A read-only view of some bytes; of what could change while it is read, and of slices, a copy."""
    if isinstance(source, Slices):
        return memoryview(bytes(source))
    view = memoryview(source)
    return view.cast("B") if view.readonly and view.c_contiguous else memoryview(view.tobytes())


class MappedFile:
    """A file that lies in memory only where it is read, or bytes that are there already. Usable in a ``with`` block.

    A path is mapped; ``Slices`` are read page by page, so that a file without a path can be as large as one with.

    ``source`` is what it was opened from, ``path`` the file's (``None`` for bytes), ``label`` what an error message
    calls it. ``tensors`` maps names to infos with an ``offset`` from ``data_start`` and a length ``n_bytes``, in bytes.
    Raises ``FormatError`` for a file that is shorter than a header, ``OSError`` for one that cannot be opened.
    """

    tensors: dict[str, Any]
    data_start: int

    def __init__(self, source: Source, header_size: int) -> None:
        self.source: Source = source
        self.path, self.label = path_of(source), path_of(source) or "the bytes"
        self._data: memoryview | Slices
        if isinstance(source, bytes | bytearray | memoryview | Slices):
            self._data = source if isinstance(source, Slices) else as_bytes(source)
            self._check_size(size_of(self._data), header_size)
        else:
            with open_regular(source) as file:
                self._check_size(os.fstat(file.fileno()).st_size, header_size)
                self._data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        self.n_bytes = size_of(self._data)

    def _check_size(self, size: int, header_size: int) -> None:
        if size < header_size:
            raise self._error(f"the file has {size} bytes, a header takes {header_size}", "header", 0)

    def raw(self, name: str) -> np.ndarray:
        """A tensor's bytes as they are in the file: (n_bytes,) uint8, read-only, not copied."""
        info = self._info(name)
        start = self.data_start + info.offset
        return np.frombuffer(self._bytes(start, start + info.n_bytes), np.uint8)

    def read(self, start: int, end: int) -> bytes:
        """The file's bytes from ``start`` to ``end``, copied."""
        return bytes(self._bytes(start, end))

    def close(self) -> None:
        """Let go of the file; arrays from ``raw`` stay valid until they are dropped."""
        self._data = memoryview(b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _info(self, name: str) -> Any:
        if not size_of(self._data):
            raise ValueError(f"{self.label} is closed; read inside the with block, or open it again")
        if name not in self.tensors:
            raise KeyError(f"no tensor {name!r} in {self.label}; the names are in .tensors")
        return self.tensors[name]

    def _take(self, form: str, at: int, field: str) -> tuple[tuple[Any, ...], int]:
        """The values of a struct at byte ``at``, and the byte after them."""
        after = at + struct.calcsize(form)
        self._need(at, after - at, field)
        return struct.unpack(form, self._bytes(at, after)), after

    def _need(self, at: int, size: int, field: str) -> None:
        if at + size > self.n_bytes:
            left = max(0, self.n_bytes - at)
            raise self._error(f"needs {size} bytes, the file ends after {left}; it is truncated", field, at)

    def _bytes(self, start: int, end: int) -> memoryview:
        """The file's bytes, not copied where they are mapped."""
        return stretch(self._data, start, end)

    def _text(self, start: int, end: int, field: str) -> str:
        return decode_text(self._data, start, end - start, field, self.path)

    def _check_places(self, places: Iterable[tuple[str, int, int, int]]) -> None:
        """Every tensor inside the file, no two of them over each other; any order, and gaps between them, are fine.

        places: (name, offset from the data's start, length, byte of the file at which the offset stands)
        """
        size, end, before = max(0, self.n_bytes - self.data_start), 0, ""
        for name, offset, n_bytes, at in sorted(places, key=lambda place: place[1:3]):
            field = f"tensor {name!r}: offset"
            if offset + n_bytes > size:
                raise self._error(
                    f"its {n_bytes} bytes from offset {offset} end outside the data section of {size} bytes; "
                    "the file is truncated, or the offset or dims are wrong",
                    field,
                    at,
                )
            if n_bytes and offset < end:
                raise self._error(f"offset {offset} lies inside {before!r}, which ends at {end}", field, at)
            if n_bytes:
                end, before = offset + n_bytes, name

    def _error(self, message: str, field: str, offset: int) -> FormatError:
        return FormatError(message, path=self.path, field=field, offset=offset)


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file to read its bytes. Raises ``FormatError`` for a pipe or a device, which have no size.

    A folder, a missing file and a name that no file can have raise ``OSError``.
    """
    name = os.fsdecode(path)
    try:
        file = open(name, "rb", opener=lambda path, flags: os.open(path, flags | getattr(os, "O_NONBLOCK", 0)))  # noqa: SIM115
    except ValueError:  # a zero character, or half of a pair of surrogates
        raise FileNotFoundError(errno.ENOENT, "no file can have this name", repr(name)) from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise FormatError("this is a pipe or a device; save what it gives as a file first", path=name)
    return file


def read_bounded(path: str | os.PathLike[str], most: int) -> bytes:
    """A file of ``most`` bytes or fewer. Raises ``FormatError`` for a longer one, and what ``open_regular`` raises."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise FormatError(f"the file is longer than {most} bytes, more than such a file can be", path=path)
    return data


def size_of(data: memoryview | Slices) -> int:
    """How many bytes there are."""
    return data.size if isinstance(data, Slices) else len(data)


def decode_text(data: memoryview | Slices, start: int, length: int, field: str, path: str | None) -> str:
    """The text at a place of the file. Raises ``FormatError`` if it is not UTF-8.

    A long one is looked through in pieces first, because Python's error carries a copy of all that it was given: a
    length that reaches into the weights then costs a piece, not the weights.
    """
    at, held, end = start, 0, start + length
    try:
        if length > TEXT_PIECE:
            decoder = codecs.getincrementaldecoder("utf-8")()
            for at in range(start, end, TEXT_PIECE):
                held = len(decoder.getstate()[0])  # bytes of a character that the piece before cut in two
                decoder.decode(stretch(data, at, min(at + TEXT_PIECE, end)), at + TEXT_PIECE >= end)
        return str(stretch(data, start, end), "utf-8")
    except UnicodeDecodeError as error:
        where = at - held + error.start
        raise FormatError(f"not valid UTF-8 ({error.reason})", path=path, field=field, offset=where) from None
