"""Numbers in blocks: for the solutions with numpy, and for the oracles one at a time with ``struct``."""

from __future__ import annotations

import struct

import numpy as np


def half_at(raw: np.ndarray, start: int) -> np.ndarray:
    """The float16 that begins at a byte of each block: (..., bytes) uint8   ->   (...) float64.

    >>> half_at(np.array([[0, 60, 9], [0, 192, 9]], np.uint8), 0).tolist()
    [1.0, -2.0]
    """
    found: np.ndarray = raw[..., start : start + 2].copy().view(np.float16)[..., 0].astype(np.float64)
    return found


def q4_0_block(d: float, q: list[int]) -> list[int]:
    """A block of Q4_0 with these integers, -8 to 7; the rest are 0.

    >>> q4_0_block(1.0, [1])[:4]
    [0, 60, 137, 136]
    """
    q = [n + 8 for n in (q + [0] * 32)[:32]]
    return [*struct.pack("<e", d), *(q[j] + 16 * q[j + 16] for j in range(16))]


def q4_1_block(d: float, m: float, q: list[int]) -> list[int]:
    """A block of Q4_1 with these integers, 0 to 15; the rest are 0."""
    q = (q + [0] * 32)[:32]
    return [*struct.pack("<2e", d, m), *(q[j] + 16 * q[j + 16] for j in range(16))]


def q8_0_block(d: float, q: list[int]) -> list[int]:
    """A block of Q8_0 with these integers; the rest are 0."""
    return list(struct.pack("<e32b", d, *(q + [0] * 32)[:32]))


def q8_1_block(d: float, s: float, q: list[int]) -> list[int]:
    """A block of Q8_1 with this sum and these integers; the rest are 0."""
    return list(struct.pack("<2e32b", d, s, *(q + [0] * 32)[:32]))


def nibbles(data: bytes) -> list[int]:
    """The low nibbles, then the high ones.

    >>> nibbles(bytes([0x21, 0x43]))
    [1, 3, 2, 4]
    """
    return [byte % 16 for byte in data] + [byte // 16 for byte in data]
