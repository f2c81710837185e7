"""Arithmetic for oracles, one number at a time with ``struct`` and ``round``: no numpy, nothing from the library."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple


class Pair(NamedTuple):
    """What a quantizer returns, its parts by name."""

    q: Any
    scale: Any


def nearest32(x: float) -> float:
    """The float32 nearest to ``x``.

    >>> nearest32(0.1) == 0.1, nearest32(0.5) == 0.5
    (False, True)
    """
    return struct.unpack("<f", struct.pack("<f", x))[0]


def nearest16(x: float) -> float:
    """The float16 nearest to ``x``, ties to even.

    >>> nearest16(0.1), nearest16(1e-9)
    (0.0999755859375, 0.0)
    """
    return struct.unpack("<e", struct.pack("<e", x))[0]


def stored_scale(weights: list[float], qmax: int) -> float:
    """The symmetric scale of some weights, as a file holds it: absmax / qmax, rounded to float16.

    >>> stored_scale([-3.5, 1.0], 7)
    0.5
    """
    return nearest16(nearest32(max(abs(x) for x in weights) / qmax))


def integer(x: float, scale: float, qmax: int) -> int:
    """x / scale, rounded half to even and clipped; 0 where the scale is 0.

    >>> integer(2.5, 1.0, 7), integer(-9.0, 1.0, 7), integer(1e-9, 0.0, 7)
    (2, -7, 0)
    """
    return max(-qmax, min(qmax, round(nearest32(x / scale)))) if scale else 0


def slices(row: list[float], group_size: int) -> list[list[float]]:
    """A row cut into groups.

    >>> slices([1.0, 2.0, 3.0, 4.0], 2)
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return [row[i : i + group_size] for i in range(0, len(row), group_size)]


def by_digits(number: int, n_bytes: int) -> bytes:
    """Little-endian by hand: the digits of ``number`` to the base 256, the smallest first.

    >>> by_digits(258, 4).hex(" ")
    '02 01 00 00'
    """
    return bytes(number // 256**power % 256 for power in range(n_bytes))


def number(data: bytes) -> int:
    """Little-endian by hand: each byte is a digit to the base 256, the smallest first.

    >>> number(b"\\x02\\x01")
    258
    """
    return sum(byte * 256**place for place, byte in enumerate(data))
