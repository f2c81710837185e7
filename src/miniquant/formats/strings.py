"""Strings in a row, each after its length: where each of them begins."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence

from ..core.slices import Bytes, ahead

LENGTH = struct.Struct("<Q")


def walk_strings(data: memoryview | Bytes, at: int, count: int, end: int) -> tuple[Sequence[int], int]:
    """Where each of ``count`` strings begins with its length, and the byte after the last.

    It stops before a string that does not end before ``end``: then there are fewer of them.

    >>> walk_strings(memoryview(bytes([1, *bytes(7), 65, 9, *bytes(7)])), 0, 2, 17)
    (array('I', [0]), 9)
    """
    starts = array("I" if end < 2**32 else "Q")
    piece, base = memoryview(b""), 0
    for _ in range(count):
        if at + LENGTH.size > end:
            break
        if at + LENGTH.size > base + len(piece):
            piece, base = ahead(data, at), at
        after = at + LENGTH.size + LENGTH.unpack_from(piece, at - base)[0]
        if after > end:
            break
        starts.append(at)
        at = after
    return starts, at
