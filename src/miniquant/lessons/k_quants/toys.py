"""Super-blocks made from their parts."""

from __future__ import annotations

import struct


def made_block(d: float, dmin: float, scales: bytes, qs: bytes) -> bytes:
    """A super-block of Q4_K from its parts."""
    return struct.pack("<2e", d, dmin) + scales + qs
