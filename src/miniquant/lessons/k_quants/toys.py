"""Super-blocks made from their parts, and cut into them."""

from __future__ import annotations

import struct

import numpy as np


def made_block(d: float, dmin: float, scales: bytes, qs: bytes) -> bytes:
    """A super-block of Q4_K from its parts."""
    return struct.pack("<2e", d, dmin) + scales + qs


def split_super_block(raw: bytes) -> tuple[float, float, np.ndarray, np.ndarray]:
    """144 bytes   ->   d, dmin: numbers; scales: (12,) uint8; qs: (128,) uint8. The lab shows this function."""
    d, dmin = struct.unpack("<2e", raw[:4])
    return d, dmin, np.frombuffer(raw[4:16], np.uint8), np.frombuffer(raw[16:], np.uint8)
