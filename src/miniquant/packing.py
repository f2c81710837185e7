"""Nibbles and bytes: two signed 4-bit integers in each byte, the even index in the low nibble."""

from __future__ import annotations

import numpy as np

from .errors import QuantizationError


def pack_nibbles(values: np.ndarray) -> np.ndarray:
    """Pack signed 4-bit integers two per byte; the low nibble is the even index.

    values: (..., n) integers in [-8, 7], n even   ->   (..., n // 2) uint8

    Raises ``QuantizationError`` for an odd ``n``, a value that 4 bits cannot hold, or a type that is not an integer.
    Source: the assignment, "the 4-bit pack".

    >>> pack_nibbles(np.array([1, 2, -1, -8])).tolist()  # 0x21, 0x8F
    [33, 143]
    """
    values = np.asarray(values)
    if not np.issubdtype(values.dtype, np.integer):
        raise QuantizationError(f"cannot pack {values.dtype} values into nibbles; round them to integers first")
    if values.ndim == 0 or values.shape[-1] % 2:
        raise QuantizationError(f"cannot pack shape {values.shape} two per byte; the last dimension must be even")
    if values.size and (values.min() < -8 or values.max() > 7):
        raise QuantizationError(f"4 bits hold -8 to 7; found {values.min()} to {values.max()}")
    nibbles = values.astype(np.uint8, order="C") & 0x0F  # two's complement of 4 bits
    pairs = nibbles.view("<u2")  # even + 256 * odd: the odd one moves down by 4 bits, and one byte holds both
    return (pairs | pairs >> 4).astype(np.uint8)


def unpack_nibbles(packed: np.ndarray) -> np.ndarray:
    """The inverse of ``pack_nibbles``.

    packed: (..., n) uint8   ->   (..., 2 n) int8 in [-8, 7]

    Raises ``QuantizationError`` if ``packed`` does not hold bytes.

    >>> unpack_nibbles(np.array([0x21, 0x8F], np.uint8)).tolist()
    [1, 2, -1, -8]
    """
    packed = np.asarray(packed)
    if packed.dtype != np.uint8 or packed.ndim == 0:
        raise QuantizationError(f"expected an array of uint8, found {packed.dtype} of shape {packed.shape}")
    pairs = packed.astype("<u2", order="C")
    nibbles = ((pairs | pairs << 4) & 0x0F0F).view(np.int8)  # 0 to 15, the low one first
    return (nibbles ^ 8) - 8  # 8 to 15 become -8 to -1
