"""The block formats of real GGUF: encode float32 rows into bytes and back, equal to ggml to the bit.

A row is cut into blocks of 32 weights; each block carries its own float16 scale, so a tensor needs no other. The
arithmetic runs on a few thousand blocks at a time, which stay in the cache; for a maximum over each block they are
turned on their side, because numpy is quick along long rows and slow along short ones.

Source: ggml's ``ggml-quants.c`` (``quantize_row_*_ref``, ``dequantize_row_*``) and ``ggml-common.h`` (the structs).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ..errors import QuantizationError

CHUNK = 4096  # blocks handled at once


class GGMLType(IntEnum):
    """The tensor types of GGUF, with ggml's numbers (``enum ggml_type``)."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q8_1 = 9
    Q2_K = 10
    Q3_K = 11
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    Q8_K = 15
    IQ2_XXS = 16
    IQ2_XS = 17
    IQ3_XXS = 18
    IQ1_S = 19
    IQ4_NL = 20
    IQ3_S = 21
    IQ2_S = 22
    IQ4_XS = 23
    I8 = 24
    I16 = 25
    I32 = 26
    I64 = 27
    F64 = 28
    IQ1_M = 29
    BF16 = 30
    TQ1_0 = 34
    TQ2_0 = 35
    MXFP4 = 39

    @property
    def block(self) -> int:
        """Weights in a block."""
        return _SIZES[self][0]

    @property
    def n_bytes(self) -> int:
        """Bytes of a block."""
        return _SIZES[self][1]

    @property
    def bits_per_weight(self) -> float:
        """Scales included.

        >>> GGMLType.Q4_0.bits_per_weight, GGMLType.Q8_0.bits_per_weight, GGMLType.Q4_K.bits_per_weight
        (4.5, 8.5, 4.5)
        """
        return 8 * self.n_bytes / self.block


_SIZES = {  # type -> (weights, bytes) of a block
    GGMLType.F32: (1, 4),
    GGMLType.F16: (1, 2),
    GGMLType.Q4_0: (32, 2 + 16),
    GGMLType.Q4_1: (32, 2 + 2 + 16),
    GGMLType.Q5_0: (32, 2 + 4 + 16),
    GGMLType.Q5_1: (32, 2 + 2 + 4 + 16),
    GGMLType.Q8_0: (32, 2 + 32),
    GGMLType.Q8_1: (32, 4 + 4 + 32),
    GGMLType.Q2_K: (256, 16 + 64 + 2 + 2),
    GGMLType.Q3_K: (256, 32 + 64 + 12 + 2),
    GGMLType.Q4_K: (256, 2 + 2 + 12 + 128),
    GGMLType.Q5_K: (256, 2 + 2 + 12 + 32 + 128),
    GGMLType.Q6_K: (256, 128 + 64 + 16 + 2),
    GGMLType.Q8_K: (256, 4 + 256 + 32),
    GGMLType.IQ2_XXS: (256, 66),
    GGMLType.IQ2_XS: (256, 74),
    GGMLType.IQ3_XXS: (256, 98),
    GGMLType.IQ1_S: (256, 50),
    GGMLType.IQ4_NL: (32, 18),
    GGMLType.IQ3_S: (256, 110),
    GGMLType.IQ2_S: (256, 82),
    GGMLType.IQ4_XS: (256, 136),
    GGMLType.I8: (1, 1),
    GGMLType.I16: (1, 2),
    GGMLType.I32: (1, 4),
    GGMLType.I64: (1, 8),
    GGMLType.F64: (1, 8),
    GGMLType.IQ1_M: (256, 56),
    GGMLType.BF16: (1, 2),
    GGMLType.TQ1_0: (256, 54),
    GGMLType.TQ2_0: (256, 66),
    GGMLType.MXFP4: (32, 17),
}


def row_bytes(kind: GGMLType, width: int) -> int:
    """Bytes of a row of ``width`` weights. Raises ``QuantizationError`` if it is no whole number of blocks.

    >>> row_bytes(GGMLType.Q8_0, 64)
    68
    """
    if width % kind.block:
        raise QuantizationError(
            f"{kind.name} stores rows of a multiple of {kind.block} weights, found {width}; store it as F16 or F32"
        )
    return width // kind.block * kind.n_bytes


def encode(w: np.ndarray, kind: GGMLType) -> np.ndarray:
    """Encode rows of weights.

    w: (..., n) float32, finite   ->   (..., row_bytes(kind, n)) uint8

    The bytes equal those of ggml's reference, overflow of the float16 scale included (it becomes infinite, as there).
    Raises ``QuantizationError`` for a type that cannot be encoded here, or rows that are no whole number of blocks.
    """
    codec = _codec(kind)
    w = np.ascontiguousarray(w, dtype=np.float32)
    shape = (*w.shape[:-1], row_bytes(kind, w.shape[-1])) if w.ndim else (kind.n_bytes,)
    blocks = w.reshape(-1, kind.block)
    out = np.empty((len(blocks), kind.n_bytes), np.uint8)
    step = CHUNK * 32 // kind.block
    with np.errstate(all="ignore"):
        for start in range(0, len(blocks), step):
            codec.encode(blocks[start : start + step], out[start : start + step])
    return out.reshape(shape)


def decode(raw: np.ndarray, kind: GGMLType) -> np.ndarray:
    """Decode rows of blocks; the inverse of ``encode``, as far as the type allows.

    raw: (..., m) uint8, whole blocks   ->   (..., n) float32

    Raises ``QuantizationError`` for a type that cannot be decoded here, or bytes that are no whole number of blocks.
    """
    codec = _codec(kind)
    raw = np.ascontiguousarray(raw, dtype=np.uint8)
    if raw.ndim == 0 or raw.shape[-1] % kind.n_bytes:
        raise QuantizationError(f"{kind.name} has blocks of {kind.n_bytes} bytes; found shape {raw.shape}")
    shape = (*raw.shape[:-1], raw.shape[-1] // kind.n_bytes * kind.block)
    blocks = raw.reshape(-1, kind.n_bytes)
    out = np.empty((len(blocks), kind.block), np.float32)
    step = CHUNK * 32 // kind.block
    with np.errstate(all="ignore"):
        for start in range(0, len(blocks), step):
            codec.decode(blocks[start : start + step], out[start : start + step])
    return out.reshape(shape)


class Codec(NamedTuple):
    """Two functions that fill their second argument: (blocks, weights) float32 and (blocks, bytes) uint8."""

    encode: Callable[[np.ndarray, np.ndarray], None]
    decode: Callable[[np.ndarray, np.ndarray], None]


def _codec(kind: GGMLType) -> Codec:
    if kind not in CODECS:
        known = ", ".join(k.name for k in CODECS)
        raise QuantizationError(f"no codec for {GGMLType(kind).name} here; there are {known}")
    return CODECS[kind]


# ---- plain floats: a block is one weight -----------------------------------------------------------------------------


def _encode_f32(w: np.ndarray, out: np.ndarray) -> None:
    out.view("<f4")[...] = w


def _decode_f32(raw: np.ndarray, out: np.ndarray) -> None:
    out[...] = raw.view("<f4")


def _encode_f16(w: np.ndarray, out: np.ndarray) -> None:
    out.view("<f2")[...] = w


def _decode_f16(raw: np.ndarray, out: np.ndarray) -> None:
    out[...] = raw.view("<f2")


def _encode_bf16(w: np.ndarray, out: np.ndarray) -> None:
    """The upper half of a float32, rounded half to even; a NaN becomes quiet."""
    bits = w.view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    if nan.any():
        rounded = np.where(nan, (bits >> 16) | 64, rounded)
    out.view("<u2")[...] = rounded


def _decode_bf16(raw: np.ndarray, out: np.ndarray) -> None:
    np.left_shift(raw.view("<u2"), 16, out=out.view(np.uint32), dtype=np.uint32)


# ---- Q8_0: d, then 32 × int8 -----------------------------------------------------------------------------------------


def _encode_q8_0(w: np.ndarray, out: np.ndarray) -> None:
    d = np.abs(np.ascontiguousarray(w.T)).max(axis=0) / np.float32(127)  # (blocks,)
    x = w * _inverse(d)[:, None]
    whole = np.trunc(x)
    x -= whole  # exact: -1 < x < 1
    q = whole.astype(np.int8)
    q += x >= 0.5  # half away from zero, as roundf does
    q -= x <= -0.5
    _store_half(out, 0, d)
    out[:, 2:] = q.view(np.uint8)


def _decode_q8_0(raw: np.ndarray, out: np.ndarray) -> None:
    np.multiply(raw[:, 2:].view(np.int8), _half(raw, 0), out=out)


# ---- Q4_0: d, then 16 bytes; byte j holds weight j in its low nibble and weight j + 16 in its high one ---------------


def _encode_q4_0(w: np.ndarray, out: np.ndarray) -> None:
    columns = np.ascontiguousarray(w.T)  # (32, blocks)
    top, bottom = columns.max(axis=0), columns.min(axis=0)
    extreme = np.where(top > -bottom, top, bottom)  # the signed weight of largest magnitude
    ties = np.flatnonzero(top == -bottom)  # there, the first one of the block
    extreme[ties] = w[ties, np.abs(w[ties]).argmax(axis=1)]
    d = extreme / np.float32(-8)
    x = w * _inverse(d)[:, None]
    x += np.float32(8.5)
    _store_half(out, 0, d)
    out[:, 2:] = _nibbles(x)


def _decode_q4_0(raw: np.ndarray, out: np.ndarray) -> None:
    np.multiply(_unpack(raw[:, 2:]).view(np.int8) - np.int8(8), _half(raw, 0), out=out)


# ---- Q4_1: d, m, then 16 bytes as in Q4_0 ----------------------------------------------------------------------------


def _encode_q4_1(w: np.ndarray, out: np.ndarray) -> None:
    columns = np.ascontiguousarray(w.T)  # (32, blocks)
    m = columns.min(axis=0)
    d = (columns.max(axis=0) - m) / np.float32(15)
    x = w - m[:, None]
    x *= _inverse(d)[:, None]
    x += np.float32(0.5)
    _store_half(out, 0, d)
    _store_half(out, 2, m)
    out[:, 4:] = _nibbles(x)


def _decode_q4_1(raw: np.ndarray, out: np.ndarray) -> None:
    np.multiply(_unpack(raw[:, 4:]), _half(raw, 0), out=out)
    out += _half(raw, 2)


# ---- what they share -------------------------------------------------------------------------------------------------


def _inverse(d: np.ndarray) -> np.ndarray:
    """1 / d, and 0 where d is 0."""
    return np.where(d == 0, np.float32(0), np.float32(1) / d)


def _nibbles(x: np.ndarray) -> np.ndarray:
    """Truncated to 0 … 15 and packed.   (blocks, 32) float32 at least 0   ->   (blocks, 16) uint8."""
    q = np.minimum(x.astype(np.uint8), 15)
    return q[:, :16] | q[:, 16:] << 4


def _unpack(packed: np.ndarray) -> np.ndarray:
    """(blocks, 16) uint8   ->   (blocks, 32) uint8, 0 … 15."""
    q = np.empty((len(packed), 32), np.uint8)
    np.bitwise_and(packed, 0x0F, out=q[:, :16])
    np.right_shift(packed, 4, out=q[:, 16:])
    return q


def _half(raw: np.ndarray, at: int) -> np.ndarray:
    """The float16 at byte ``at`` of every block: (blocks, 1) float32."""
    return np.ascontiguousarray(raw[:, at : at + 2]).view("<f2").astype(np.float32)


def _store_half(out: np.ndarray, at: int, values: np.ndarray) -> None:
    out[:, at : at + 2] = values.astype("<f2").view(np.uint8).reshape(-1, 2)


CODECS: dict[GGMLType, Codec] = {
    GGMLType.F32: Codec(_encode_f32, _decode_f32),
    GGMLType.F16: Codec(_encode_f16, _decode_f16),
    GGMLType.BF16: Codec(_encode_bf16, _decode_bf16),
    GGMLType.Q8_0: Codec(_encode_q8_0, _decode_q8_0),
    GGMLType.Q4_0: Codec(_encode_q4_0, _decode_q4_0),
    GGMLType.Q4_1: Codec(_encode_q4_1, _decode_q4_1),
}


def tensor_bytes(kind: GGMLType, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor whose last dimension is the row (numpy order).

    >>> tensor_bytes(GGMLType.Q4_0, (3, 64))
    108
    """
    return math.prod(shape[:-1]) * row_bytes(kind, shape[-1]) if shape else kind.n_bytes
