"""Integers of a few bits in bytes: signed nibbles, and the fields that K-quants are made of."""

from __future__ import annotations

import numpy as np

from ..core.errors import QuantizationError


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
    both: np.ndarray = pairs | pairs >> 4
    return both.astype(np.uint8)


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
    nibbles: np.ndarray = ((pairs | pairs << 4) & 0x0F0F).view(np.int8)  # 0 to 15, the low one first
    signed: np.ndarray = (nibbles ^ 8) - 8  # 8 to 15 become -8 to -1
    return signed


# ---- K-quants: fields of 1, 2, 4 and 6 bits --------------------------------------------------------------------------


def pack_runs(values: np.ndarray, width: int, run: int) -> np.ndarray:
    """Pack fields of ``width`` bits: a run of bytes holds ``run`` values in its lowest bits, the next ones above them.

    values: (..., n) uint8 below 2**width, n a multiple of run · 8/width   ->   (..., n · width/8) uint8

    Raises ``QuantizationError`` for values or a number of them that do not fit. Source: ``quantize_row_*_K_ref`` of
    ggml's ``ggml-quants.c``, where this is how nibbles, pairs of bits and single bits are laid out.

    >>> pack_runs(np.array([1, 2, 3, 4], np.uint8), width=4, run=2).tolist()  # 0x31, 0x42
    [49, 66]
    """
    values, fields = np.asarray(values), 8 // width
    if values.dtype != np.uint8 or values.ndim == 0 or values.shape[-1] % (run * fields):
        raise QuantizationError(
            f"{values.dtype} of shape {values.shape} do not fill runs of {run} bytes, {fields} each"
        )
    if values.size and values.max() >> width:
        raise QuantizationError(f"{width} bits hold 0 to {2**width - 1}; found {values.max()}")
    split = values.reshape(*values.shape[:-1], values.shape[-1] // (run * fields), fields, run)
    packed = split[..., 0, :].copy()  # (..., runs, run)
    for i in range(1, fields):
        packed |= split[..., i, :] << np.uint8(width * i)
    return packed.reshape(*values.shape[:-1], values.shape[-1] // fields)


def unpack_runs(packed: np.ndarray, width: int, run: int) -> np.ndarray:
    """The inverse of ``pack_runs``.

    packed: (..., m) uint8, m a multiple of run   ->   (..., m · 8/width) uint8 below 2**width

    Raises ``QuantizationError`` if ``packed`` does not hold whole runs of bytes.

    >>> unpack_runs(np.array([0x31, 0x42], np.uint8), width=4, run=2).tolist()
    [1, 2, 3, 4]
    """
    packed = np.asarray(packed)
    if packed.dtype != np.uint8 or packed.ndim == 0 or packed.shape[-1] % run:
        raise QuantizationError(f"expected runs of {run} bytes, found {packed.dtype} of shape {packed.shape}")
    lead, m, fields = packed.shape[:-1], packed.shape[-1], 8 // width
    split = packed.reshape(*lead, m // run, run)
    values = np.empty((*lead, m // run, fields, run), np.uint8)
    for i in range(fields):
        np.right_shift(split, np.uint8(width * i), out=values[..., i, :])
    values &= np.uint8(2**width - 1)
    return values.reshape(*lead, m * fields)


def pack_scales_and_mins(scales: np.ndarray, mins: np.ndarray) -> np.ndarray:
    """Pack 8 scales and 8 mins of 6 bits each, as Q4_K and Q5_K do.

    scales, mins: (..., 8) uint8, 0 to 63   ->   (..., 12) uint8

    Bytes 0 to 3 hold scales 0 to 3, bytes 4 to 7 mins 0 to 3, in their lower six bits. The later four of each are
    cut: byte 8 + j holds the lower four bits of scale 4 + j, and above them those of minimum 4 + j; the upper two
    bits lie on top of bytes j (scale) and 4 + j (minimum).

    Raises ``QuantizationError`` for numbers that 6 bits cannot hold, or another count of them.
    Source: ``get_scale_min_k4`` in ggml's ``ggml-quants.c``.

    >>> pack_scales_and_mins(np.arange(8, dtype=np.uint8), np.arange(56, 64, dtype=np.uint8)).tolist()
    [0, 1, 2, 3, 248, 249, 250, 251, 196, 213, 230, 247]
    """
    scales, mins = _six_bits(scales, 8), _six_bits(mins, 8)
    early, late = slice(0, 4), slice(4, 8)
    first = scales[..., early] | scales[..., late] >> 4 << 6
    second = mins[..., early] | mins[..., late] >> 4 << 6
    third = scales[..., late] & 15 | mins[..., late] << 4
    return np.concatenate([first, second, third], axis=-1)


def unpack_scales_and_mins(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inverse of ``pack_scales_and_mins``.

    packed: (..., 12) uint8   ->   scales (..., 8), mins (..., 8), uint8 of 0 to 63

    Raises ``QuantizationError`` for anything but twelve bytes.

    >>> unpack_scales_and_mins(np.array([0, 1, 2, 3, 248, 249, 250, 251, 196, 213, 230, 247], np.uint8))[1].tolist()
    [56, 57, 58, 59, 60, 61, 62, 63]
    """
    packed = _twelve_bytes(packed)
    first, second, third = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=-1)
    mins = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=-1)
    return scales, mins


def pack_scales(scales: np.ndarray) -> np.ndarray:
    """Pack 16 scales of 6 bits each, as Q3_K does.

    scales: (..., 16) uint8, 0 to 63   ->   (..., 12) uint8

    The lower four bits of scale j and of scale j + 8 share byte j; the upper two bits of scales j, j + 4, j + 8 and
    j + 12 share byte 8 + j, from the lowest bits up.

    Raises ``QuantizationError`` for numbers that 6 bits cannot hold, or another count of them.
    Source: ``quantize_row_q3_K_ref`` in ggml's ``ggml-quants.c``.

    >>> pack_scales(np.arange(48, 64, dtype=np.uint8)).tolist()
    [128, 145, 162, 179, 196, 213, 230, 247, 255, 255, 255, 255]
    """
    scales = _six_bits(scales, 16)
    return np.concatenate([pack_runs(scales & 15, 4, 8), pack_runs(scales >> 4, 2, 4)], axis=-1)


def unpack_scales(packed: np.ndarray) -> np.ndarray:
    """The inverse of ``pack_scales``.

    packed: (..., 12) uint8   ->   (..., 16) uint8 of 0 to 63

    Raises ``QuantizationError`` for anything but twelve bytes.

    >>> unpack_scales(np.array([0] * 11 + [0b11100100], np.uint8)).tolist()
    [0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 32, 0, 0, 0, 48]
    """
    packed = _twelve_bytes(packed)
    scales: np.ndarray = unpack_runs(packed[..., :8], 4, 8) | unpack_runs(packed[..., 8:], 2, 4) << 4
    return scales


def _six_bits(values: np.ndarray, count: int) -> np.ndarray:
    values = np.asarray(values)
    if values.dtype != np.uint8 or values.shape[-1:] != (count,):
        raise QuantizationError(f"expected {count} numbers of uint8, found {values.dtype} of shape {values.shape}")
    if values.size and values.max() > 63:
        raise QuantizationError(f"6 bits hold 0 to 63; found {values.max()}")
    return values


def _twelve_bytes(packed: np.ndarray) -> np.ndarray:
    packed = np.asarray(packed)
    if packed.dtype != np.uint8 or packed.shape[-1:] != (12,):
        raise QuantizationError(f"expected 12 bytes (uint8), found {packed.dtype} of shape {packed.shape}")
    return packed
