"""Nibbles that are indices into sixteen levels, decoded: IQ4_NL, IQ4_XS, and the floats of four bits.

Those are encoded here, too, sixteen blocks or sub-blocks at once, each in a lane of its own.
"""

# mypy: disable-error-code="no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from ..codecs.four_bit_floats import VALUES, power_of_two
from ..codecs.iq4_nl import LEVELS
from ..codecs.nvfp4 import from_e4m3
from ..types import GGMLType
from . import DECODE, ENCODE, FORMS, Form
from .bits import half_at, word_at
from .k_quants import transposed
from .rounding import put_nibbles
from .searches import ZERO
from .unpacked import put
from .vectors import N, every, every_int, in_lanes, inner, load, looked_up, magnitude, read, store, unsigned, where

f32, i32, i64, u8, u32 = np.float32, np.int32, np.int64, np.uint8, np.uint32
_FOUR = 0x0F0F0F0F  # the lowest four bits of each byte of a word


@inner
def _put_levels(weights: Any, at: Any, q: Any, levels: Any, scale: Any, past: Any) -> None:
    """32 weights.   q: sixteen bytes."""
    put(weights, at, looked_up(levels, unsigned(q & 15)) * scale, past)
    put(weights, at + 16, looked_up(levels, unsigned(q >> 4)) * scale, past)


def decode_iq4_nl(raw: Any, out: Any, past: bool, levels: Any) -> None:
    """raw: (blocks, 18) uint8   ->   out: (blocks, 32) float32."""
    block, weights, table = raw.reshape(-1), out.reshape(-1), read(levels, 0)
    for b in range(len(raw)):
        _put_levels(weights, 32 * b, read(block, 18 * b + 2), table, half_at(block, 18 * b), past)


def decode_iq4_xs(raw: Any, out: Any, past: bool, levels: Any) -> None:
    """raw: (blocks, 136) uint8   ->   out: (blocks, 256) float32."""
    block, weights, table = raw.reshape(-1), out.reshape(-1), read(levels, 0)
    for b in range(len(raw)):
        at = 136 * b
        d, above, low = half_at(block, at), i64(block[at + 2]) | i64(block[at + 3]) << 8, word_at(block, at + 4)
        for sub in range(8):
            scale = d * f32((low >> 4 * sub & 15 | (above >> 2 * sub & 3) << 4) - 32)
            _put_levels(weights, 256 * b + 32 * sub, read(block, at + 8 + 16 * sub), table, scale, past)


def decode_mxfp4(raw: Any, out: Any, past: bool, values: Any, worth: Any) -> None:
    """raw: (blocks, 17) uint8   ->   out: (blocks, 32) float32.   worth: (256,) float32, of each byte as a scale."""
    block, weights, table = raw.reshape(-1), out.reshape(-1), read(values, 0)
    for b in range(len(raw)):
        _put_levels(weights, 32 * b, read(block, 17 * b + 1), table, worth[block[17 * b]], past)


def decode_nvfp4(raw: Any, out: Any, past: bool, values: Any, worth: Any) -> None:
    """raw: (blocks, 36) uint8   ->   out: (blocks, 64) float32.   worth: (256,) float32, of each byte as a scale."""
    block, weights, table = raw.reshape(-1), out.reshape(-1), read(values, 0)
    for b in range(len(raw)):
        for sub in range(4):
            first, second = word_at(block, 36 * b + 4 + 8 * sub), word_at(block, 36 * b + 8 + 8 * sub)
            low, low2, high, high2 = first & _FOUR, second & _FOUR, first >> 4 & _FOUR, second >> 4 & _FOUR
            q = unsigned(in_lanes((u32(low), u32(low2), u32(high), u32(high2))))
            scale = worth[block[36 * b + sub]]
            put(weights, 64 * b + 16 * sub, looked_up(table, q) * scale, past)


@inner
def _nearest(x: Any, d: Any, values: Any, q: Any) -> None:
    """``nearest_value``.   x: a tile, d: of each lane -> q: (n, 16) int32."""
    for i in range(len(x)):
        v, found = load(x, i), every_int(i32(0))
        size = smallest = magnitude(v)
        for j in range(1, 8):
            error = magnitude(d * f32(values[j]) - size)
            better = error < smallest
            found, smallest = where(better, every_int(i32(j)), found), where(better, error, smallest)
        store(q, i, where((v < ZERO) & (found != 0), found | 8, found))


@inner
def _magnitudes(x: Any, most: Any) -> None:
    """The largest magnitude of each lane.   x: a tile -> most: (1, 16)."""
    found = every(ZERO)
    for i in range(len(x)):
        size = magnitude(load(x, i))
        found = where((size > found) | (size != size), size, found)
    store(most, 0, found)


def encode_mxfp4(w: Any, out: Any, values: Any, worth: Any) -> None:
    """w: (blocks, 32) float32   ->   out: (blocks, 17) uint8."""
    x, q, most, scales = np.empty((32, N), f32), np.empty((32, N), i32), np.empty((1, N), f32), np.empty((1, N), f32)
    exponents = np.empty(N, u8)
    for first in range(0, len(w), N):
        transposed(w, first, x)
        _magnitudes(x, most)
        for lane in range(N):
            e = f32(0)
            if most[0, lane] > ZERO:
                e = np.floor(f32(np.log2(np.float64(most[0, lane])))) + f32(125)
            exponents[lane] = u8(i64(e) & 255) if abs(e) < f32(1000) else u8(0)
            scales[0, lane] = worth[exponents[lane]]
        _nearest(x, load(scales, 0), values, q)
        for lane in range(min(N, len(w) - first)):
            out[first + lane, 0] = exponents[lane]
            put_nibbles(q, lane, False, out[first + lane, 1:])


@inner
def _e4m3(x: Any) -> Any:
    """``to_e4m3`` of one number."""
    if x < f32(2**-6):
        bits = i64(min(x * f32(512) + f32(0.5), f32(7)))
    elif x < f32(256):
        bits = ((i64(f32(x).view(i32)) >> 19) + 1 >> 1) - (120 << 3)
    else:
        bits = i64(0x7E)
    return u8(bits if bits < 120 else 0x7E)


def encode_nvfp4(w: Any, out: Any, values: Any, worth: Any) -> None:
    """w: (blocks, 64) float32   ->   out: (blocks, 36) uint8."""
    x, q, most, scales = np.empty((16, N), f32), np.empty((16, N), i32), np.empty((1, N), f32), np.empty((1, N), f32)
    subs, fields = w.reshape(-1, 16), np.empty(N, u8)
    for first in range(0, len(subs), N):
        transposed(subs, first, x)
        _magnitudes(x, most)
        for lane in range(N):
            fields[lane] = _e4m3(f32(most[0, lane] / f32(6)))
            scales[0, lane] = worth[fields[lane]]
        _nearest(x, load(scales, 0), values, q)
        for lane in range(min(N, len(subs) - first)):
            block, sub = out[(first + lane) // 4], (first + lane) % 4
            block[sub] = fields[lane]
            for i in range(8):
                block[4 + 8 * sub + i] = u8(q[i, lane] | q[i + 8, lane] << 4)


_BYTES = np.arange(256, dtype=np.uint8)
_MXFP4, _NVFP4 = (VALUES, power_of_two(_BYTES)), (VALUES, from_e4m3(_BYTES) / f32(2))
FORMS[GGMLType.IQ4_NL, DECODE] = Form(decode_iq4_nl, (LEVELS,))
FORMS[GGMLType.IQ4_XS, DECODE] = Form(decode_iq4_xs, (LEVELS,))
FORMS[GGMLType.MXFP4, DECODE] = Form(decode_mxfp4, _MXFP4)
FORMS[GGMLType.NVFP4, DECODE] = Form(decode_nvfp4, _NVFP4)
FORMS[GGMLType.MXFP4, ENCODE] = Form(encode_mxfp4, _MXFP4)
FORMS[GGMLType.NVFP4, ENCODE] = Form(encode_nvfp4, _NVFP4)
