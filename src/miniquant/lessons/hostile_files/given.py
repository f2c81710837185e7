"""The three checks of lab 23's reader that are given: a string, the dims, and where the data begin."""

from __future__ import annotations

import struct

from ...core.errors import FormatError

MAX_DIMS = 4


def safe_string(data: bytes, at: int) -> tuple[str, int]:
    """The string at byte ``at`` of a GGUF file: its length (u64), then UTF-8   ->   (text, the place after it).

    Raises ``FormatError`` if the length or the text is not there, or the text is not UTF-8.
    """
    if at + 8 > len(data):
        raise FormatError("the length of a string is not there", offset=at)
    (length,) = struct.unpack_from("<Q", data, at)
    if length > len(data) - at - 8:  # before slicing: a slice that reaches too far raises nothing
        raise FormatError(f"a string of {length} bytes, and {len(data) - at - 8} are left", offset=at)
    end = at + 8 + length
    try:
        return data[at + 8 : end].decode("utf-8"), end
    except UnicodeDecodeError:
        raise FormatError("a string that is not UTF-8", offset=at + 8) from None


def read_dims(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """The dims at byte ``at``: n_dims (u32), then n_dims dims (u64)   ->   (the dims, the place after them).

    Raises ``FormatError`` for more than four dims, and for dims that are not all there.
    """
    if at + 4 > len(data):
        raise FormatError("n_dims is not there", offset=at)
    (n_dims,) = struct.unpack_from("<I", data, at)
    if n_dims > MAX_DIMS:
        raise FormatError(f"{n_dims} dims, {MAX_DIMS} at most", offset=at)
    end = at + 4 + 8 * n_dims
    if end > len(data):
        raise FormatError("not all dims are there", offset=at + 4)
    return struct.unpack_from(f"<{n_dims}Q", data, at + 4), end


def data_start(position: int, alignment: int, file_size: int) -> int:
    """Where the data begin: the first multiple of the alignment from ``position``, the end of the infos, on.

    Raises ``FormatError`` for an alignment that is no power of two, and for data that begin after the end of the file.
    """
    if alignment == 0 or alignment & (alignment - 1):  # a power of two has a single bit set
        raise FormatError(f"the alignment is {alignment}, and it must be a power of two")
    start = -(-position // alignment) * alignment
    if start > file_size:
        raise FormatError(f"the data would begin at {start}, and the file has {file_size} bytes")
    return start
