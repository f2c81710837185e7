"""Bytes that are read where they are asked for: a file in a browser, which has no path, or one larger than memory."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

PAGE = 2**17  # bytes read at once
KEPT = 64  # pages that stay in memory

Read = Callable[[int, int], bytes]  # the bytes from a start to an end


class Slices:
    """A file of any length, of which only those pages are read that are looked at.

    read: gives the file's bytes from a start to an end. size: how many there are. name: what a picture calls it.
    edits: bytes that stand in place of the file's own, by their offset; the file stays as it is.

    A slice of it is a new one and reads nothing. ``bytes`` and numpy read it. ``size`` may be more than an index of
    this machine can hold, so there is no ``len``. Raises ``OSError`` if ``read`` gives less than it was asked for.

    >>> part = Slices(lambda start, end: b"weights"[start:end], 7, edits={0: ord("W")})[:3]
    >>> part.size, bytes(part)
    (3, b'Wei')
    """

    def __init__(self, read: Read, size: int, name: str = "bytes", edits: Mapping[int, int] | None = None) -> None:
        self.name = name
        self._pages = _Pages(read, size, dict(edits or {}))
        self._start, self._end = 0, size

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self._end - self._start

    def __getitem__(self, part: slice) -> Slices:
        start, end = (self.size if n is None and i else n or 0 for i, n in enumerate((part.start, part.stop)))
        start, end = (min(max(n + self.size if n < 0 else n, 0), self.size) for n in (start, end))
        found = object.__new__(Slices)
        found.name, found._pages = self.name, self._pages
        found._start, found._end = self._start + start, self._start + max(start, end)
        return found

    def __bytes__(self) -> bytes:
        return self._pages.read(self._start, self._end)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.frombuffer(bytes(self), np.uint8).astype(dtype or np.uint8, copy=bool(copy))


class _Pages:
    """The pages of a file that were read last."""

    def __init__(self, read: Read, size: int, edits: dict[int, int]) -> None:
        self._read, self._size, self._edits = read, size, edits
        self._kept: OrderedDict[int, bytes] = OrderedDict()

    def read(self, start: int, end: int) -> bytes:
        first, last = start // PAGE, (end - 1) // PAGE
        if end <= start:
            return b""
        if last - first >= KEPT // 2:
            return self._fresh(start, end)
        parts = b"".join(map(self._page, range(first, last + 1))) if last > first else self._page(first)
        return parts[start - first * PAGE : end - first * PAGE]

    def _page(self, number: int) -> bytes:
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        found = self._kept[number] = self._fresh(number * PAGE, min((number + 1) * PAGE, self._size))
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found

    def _fresh(self, start: int, end: int) -> bytes:
        found = self._read(start, end)
        if len(found) != end - start:
            raise OSError(f"asked for the bytes {start} to {end - 1}, {len(found)} came: the file was changed")
        edits = {at: byte for at, byte in self._edits.items() if start <= at < end}
        if not edits:
            return found
        edited = bytearray(found)
        for at, byte in edits.items():
            edited[at - start] = byte
        return bytes(edited)


def as_slices(data: Any) -> Slices:
    """Bytes of any kind as slices of them; slices as they are."""
    if isinstance(data, Slices):
        return data
    view = memoryview(data).cast("B")
    return Slices(lambda start, end: bytes(view[start:end]), len(view))


class SliceFile(io.RawIOBase):
    """Slices as an open file, for a library that wants one."""

    def __init__(self, slices: Slices) -> None:
        self.slices, self.at = slices, 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """It can be read from any place."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a byte, counted from the start, the place now, or the end."""
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.slices.size}[whence]
        return self.at

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer as far as the file goes."""
        found = bytes(self.slices[self.at : self.at + len(buffer)])
        buffer[: len(found)] = found
        self.at += len(found)
        return len(found)


Bytes = np.ndarray | Slices  # the bytes of a file: (n,) uint8, or what reads them; ``size`` says how many


def stretch(data: memoryview | Bytes, start: int, end: int) -> memoryview:
    """The bytes from ``start`` to ``end``; a copy only of what is read by slices."""
    part = data[start:end]
    if isinstance(part, Slices):
        return memoryview(bytes(part))
    return part if isinstance(part, memoryview) else np.ascontiguousarray(part).data


def ahead(data: memoryview | Bytes, start: int) -> memoryview:
    """The bytes from ``start``, as many as lie in memory: all of them, or the next page or two of ``Slices``."""
    end = start + 2 * PAGE if isinstance(data, Slices) else data.nbytes
    return stretch(data, start, end)
