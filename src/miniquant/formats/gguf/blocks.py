"""The block formats of real GGUF: encode float32 rows into bytes and back, equal to ggml to the bit.

A row is cut into blocks of 32 weights; each block carries its own float16 scale, so a tensor needs no other. K-quants
have blocks of 256 and scales in two stages, see ``kquants``. The arithmetic runs on an eighth of a million weights at a
time, in up to four threads. Where it goes across the weights of a block, the blocks are turned on their side first:
numpy is quick along long rows and slow along short ones.

Source: ggml's ``ggml-quants.c`` (``quantize_row_*_ref``, ``dequantize_row_*``) and ``ggml-common.h`` (the structs).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ...core.errors import QuantizationError
from .kquants import K_CODECS
from .types import GGMLType

CHUNK = 131_072  # weights handled at once: with their scratch they stay in a core's own cache
THREADS = min(4, os.cpu_count() or 1)  # at most; numpy lets other threads run while it computes
ALONE = 1_000_000  # weights up to which a second thread is not worth its start


def row_bytes(kind: GGMLType, width: int) -> int:
    """Bytes of a row of ``width`` weights. Raises ``QuantizationError`` if it is no whole number of blocks.

    >>> row_bytes(GGMLType.Q8_0, 64)
    68
    """
    return kind.bytes_of((width,))


def encode(w: np.ndarray, kind: GGMLType) -> np.ndarray:
    """Encode rows of weights.

    w: (..., n) float32, finite   ->   (..., row_bytes(kind, n)) uint8

    The bytes equal those of ggml's reference, overflow of the float16 scale included (it becomes infinite, as there).
    For F32 they are a view of ``w`` where that is contiguous float32 already: there is nothing to do.

    Raises ``QuantizationError`` for a type that cannot be encoded here, or rows that are no whole number of blocks.
    """
    codec = _codec(kind)
    w = np.ascontiguousarray(w, dtype=np.float32)  # a scalar becomes a row of one
    shape = (*w.shape[:-1], row_bytes(kind, w.shape[-1]))
    if codec is AS_IT_IS:
        return w.astype("<f4", copy=False).view(np.uint8)
    blocks = w.reshape(-1, kind.block)
    out = np.empty((len(blocks), kind.n_bytes), np.uint8)
    _in_chunks(codec.encode, blocks, out, kind.block)
    return out.reshape(shape)


def decode(raw: np.ndarray, kind: GGMLType) -> np.ndarray:
    """Decode rows of blocks; the inverse of ``encode``, as far as the type allows.

    raw: (..., m) uint8, whole blocks   ->   (..., n) float32; for F32 a view of ``raw``, read-only if that is

    Raises ``QuantizationError`` for a type that cannot be decoded here, or bytes that are no whole number of blocks.
    """
    codec = _codec(kind)
    raw = np.asarray(raw)
    if raw.dtype != np.uint8 or raw.ndim == 0 or raw.shape[-1] % kind.n_bytes:
        raise QuantizationError(
            f"{kind.name} has blocks of {kind.n_bytes} bytes (uint8); found {raw.dtype} of shape {raw.shape}"
        )
    shape = (*raw.shape[:-1], raw.shape[-1] // kind.n_bytes * kind.block)
    if codec is AS_IT_IS:
        return np.require(np.ascontiguousarray(raw).view("<f4"), np.float32, "A")
    blocks = np.ascontiguousarray(raw).reshape(-1, kind.n_bytes)
    out = np.empty((len(blocks), kind.block), np.float32)
    _in_chunks(codec.decode, blocks, out, kind.block)
    return out.reshape(shape)


Work = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


class Codec(NamedTuple):
    """Two functions of (source, target, scratch), where scratch is float32, two rows as large as the weights.

    ``encode`` goes from (blocks, weights) float32 to (blocks, bytes) uint8, ``decode`` back.
    """

    encode: Work | None
    decode: Work | None


AS_IT_IS = Codec(None, None)  # the bytes are the weights, and there is nothing to do


def _codec(kind: GGMLType) -> Codec:
    if kind not in CODECS:
        known = ", ".join(k.name for k in CODECS)
        raise QuantizationError(f"no codec for {GGMLType(kind).name} here; there are {known}")
    return CODECS[kind]


def _in_chunks(work: Work, source: np.ndarray, target: np.ndarray, block: int) -> None:
    """Do the work on ``CHUNK`` weights after another; in several threads if there is much of it."""
    n, step = len(source), CHUNK // block  # in blocks
    threads = THREADS if n * block > ALONE else 1
    share = -(-n // (threads * step)) * step  # of a thread, in whole chunks

    def run(first: int) -> None:
        last = min(first + share, n)
        scratch = np.empty((2, min(step, last - first) * block), np.float32)
        with np.errstate(all="ignore"):  # an overflow is the caller's to find
            for start in range(first, last, step):
                part = slice(start, min(start + step, last))
                work(source[part], target[part], scratch)

    if threads == 1:
        return run(0)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, range(0, n, share)))


# ---- plain floats: a block is one weight -----------------------------------------------------------------------------


def _encode_f16(w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    """Rounded half to even. ``out.view("<f2")[...] = w`` says it all, and takes almost twice as long.

    Adding to abs(w) a power of two that is 2¹³ times its own rounds it to float16's 11 bits, and leaves them at the
    end of the sum; what is below float16's normal numbers adds as if it were the smallest of them.
    """
    x, power = (row[: w.size].reshape(w.shape) for row in scratch.view(np.uint32))
    bits, half = w.view(np.uint32), out.view("<u2")
    np.bitwise_and(bits, _U(0x7FFFFFFF), out=x)
    if x.max(initial=0) >= 143 << 23:  # 65536, infinite, or NaN
        out.view("<f2")[...] = w
        return
    np.bitwise_and(x, _U(0xFF << 23), out=power)
    np.maximum(power, _SMALLEST_F16[: len(w)], out=power)  # a scalar would be slow here
    power += _U(13 << 23)
    np.add(x.view(np.float32), power.view(np.float32), out=x.view(np.float32))
    power >>= _U(13)
    x += power  # in the lower half now: the 11 bits, and an exponent too large by 126
    np.right_shift(bits, _U(16), out=power)
    power &= _U(0x8000)
    x += power  # and the sign
    half[...] = x
    half -= np.uint16((126 << 10) % 2**16)


def _decode_f16(raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    """The sign stays at the top, the rest moves to its place, the exponent counts from 127 and no longer from 15."""
    bits = out.view(np.uint32)
    np.copyto(bits, raw.view("<i2"), casting="unsafe")  # the sign fills the upper half
    bits <<= _U(13)
    bits &= _U(0x8FFFE000)
    bits += _U((127 - 15) << 23)
    odd = ((raw.view("<u2") + np.uint16(0x400)) & np.uint16(0x7800)) == 0  # exponents 0 and 31 mean something else
    np.copyto(out, raw.view("<f2"), where=odd)


def _encode_bf16(w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    """The upper half of a float32, rounded half to even; a NaN becomes quiet."""
    bits, half = w.view(np.uint32), out.view("<u2")
    x = scratch[0].view(np.uint32)[: w.size].reshape(w.shape)
    np.right_shift(bits, _U(16), out=x)
    x &= _U(1)
    x += bits
    x += _U(0x7FFF)
    x >>= _U(16)
    half[...] = x
    np.bitwise_and(bits, _U(0x7FFFFFFF), out=x)
    if x.max(initial=0) > 0xFF << 23:
        nan = x > 0xFF << 23
        half[nan] = bits[nan] >> 16 | 64


def _decode_bf16(raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    bits = out.view(np.uint32)
    bits[...] = raw.view("<u2")
    bits <<= _U(16)


# ---- Q8_0: d, then 32 × int8 -----------------------------------------------------------------------------------------


def _encode_q8_0(w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    columns = _on_its_side(w, scratch)
    d = np.abs(np.maximum(columns.max(axis=0), -columns.min(axis=0))) / np.float32(127)  # (blocks,)
    x, half = (row[: w.size].reshape(w.shape) for row in scratch)
    inverse = _inverse(d)
    np.multiply(w, inverse[:, None], out=x)
    x[np.isinf(inverse)] = 0
    sign = half.view(np.uint32)
    np.bitwise_and(x.view(np.uint32), _U(0x80000000), out=sign)
    sign |= _ALMOST_HALF.view(np.uint32)
    x += half  # and cut off: half away from zero, as roundf does
    out.view("<f2")[:, 0] = d
    out[:, 2:] = x.astype(np.int8).view(np.uint8)


def _decode_q8_0(raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    out[...] = raw[:, 2:].view(np.int8)
    out *= _half(raw, 0)


# ---- Q4_0: d, then 16 bytes; byte j holds weight j in its low nibble and weight j + 16 in its high one ---------------


def _encode_q4_0(w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    x = _on_its_side(w, scratch)  # (32, blocks)
    top, bottom = x.max(axis=0), x.min(axis=0)
    extreme = np.where(top > -bottom, top, bottom)  # the signed weight of largest magnitude
    ties = np.flatnonzero(top == -bottom)  # there, the first one of the block
    extreme[ties] = w[ties, np.abs(w[ties]).argmax(axis=1)]
    d = extreme / np.float32(-8)
    out.view("<f2")[:, 0] = d
    out[:, 2:] = _nibbles(x, d, np.float32(8.5)).T


def _decode_q4_0(raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    _unpack(raw[:, 2:], out)
    out -= np.float32(8)
    out *= _half(raw, 0)


# ---- Q4_1: d, m, then 16 bytes as in Q4_0 ----------------------------------------------------------------------------


def _encode_q4_1(w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    x = _on_its_side(w, scratch)  # (32, blocks)
    m = x.min(axis=0)
    d = (x.max(axis=0) - m) / np.float32(15)
    x -= m
    out.view("<f2")[:, 0] = d
    out.view("<f2")[:, 1] = m
    out[:, 4:] = _nibbles(x, d, np.float32(0.5)).T


def _decode_q4_1(raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    _unpack(raw[:, 4:], out)
    out *= _half(raw, 0)
    out += _half(raw, 1)


# ---- what they share -------------------------------------------------------------------------------------------------

_U = np.uint32
_SMALLEST_F16 = np.full((CHUNK, 1), (127 - 14) << 23, np.uint32)  # the bits of 2⁻¹⁴, float16's smallest normal number
_ALMOST_HALF = np.nextafter(np.float32(0.5), np.float32(0))  # half itself would lift the float below one half to 1


def _on_its_side(w: np.ndarray, scratch: np.ndarray) -> np.ndarray:
    """A copy, turned: (blocks, 32)   ->   (32, blocks)."""
    columns = scratch[0, : w.size].reshape(w.shape[1], -1)
    columns[...] = w.T
    return columns


def _inverse(d: np.ndarray) -> np.ndarray:
    """1 / d, and 0 where d is 0."""
    return np.where(d == 0, np.float32(0), np.float32(1) / d)


def _nibbles(x: np.ndarray, d: np.ndarray, shift: np.float32) -> np.ndarray:
    """x / d + shift, cut to 0 … 15 and packed.   x: (32, blocks) float32, spoilt   ->   (16, blocks) uint8."""
    inverse = _inverse(d)
    x *= inverse
    x += shift
    x[:, ~(np.isfinite(inverse) & np.isfinite(d))] = 0  # what casting infinity to an integer gives on a PC
    q = x.astype(np.uint8)  # 0 to 16
    q -= (q > 15).view(np.uint8)
    high = q[16:]
    high *= np.uint8(16)  # a shift of bytes takes ten times as long
    high |= q[:16]
    return high


def _unpack(packed: np.ndarray, out: np.ndarray) -> None:
    """Packed nibbles as floats.   (blocks, 16) uint8   ->   out: (blocks, 32) float32, 0 … 15."""
    packed = np.ascontiguousarray(packed)
    out[:, :16] = packed & np.uint8(0x0F)
    out[:, 16:] = packed >> np.uint8(4)


def _half(raw: np.ndarray, at: int) -> np.ndarray:
    """The float16 number ``at`` of every block: (blocks, 1) float32."""
    return raw.view("<f2")[:, at : at + 1].astype(np.float32)


CODECS: dict[GGMLType, Codec] = {
    GGMLType.F32: AS_IT_IS,
    GGMLType.F16: Codec(_encode_f16, _decode_f16),
    GGMLType.BF16: Codec(_encode_bf16, _decode_bf16),
    GGMLType.Q8_0: Codec(_encode_q8_0, _decode_q8_0),
    GGMLType.Q4_0: Codec(_encode_q4_0, _decode_q4_0),
    GGMLType.Q4_1: Codec(_encode_q4_1, _decode_q4_1),
    **{kind: Codec(*pair) for kind, pair in K_CODECS.items()},
}
