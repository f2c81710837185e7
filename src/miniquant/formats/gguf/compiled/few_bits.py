"""Weights of one bit or two, or of a third of eight, encoded and decoded: Q1_0, Q2_0, TQ1_0, TQ2_0."""

# mypy: disable-error-code="no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from ..types import GGMLType
from . import DECODE, ENCODE, FORMS, Form
from .bits import half_at, put_half, word_at
from .k_quants import transposed
from .searches import ONE, ZERO
from .unpacked import put
from .vectors import (
    N,
    bits_where,
    bytes_of,
    condition,
    every,
    every_int,
    in_lanes,
    inner,
    load,
    magnitude,
    read,
    store,
    to_floats,
    unsigned,
    where,
    write,
)

f32, i32, i64, u8, u32 = np.float32, np.int32, np.int64, np.uint8, np.uint32
_PLACES = np.arange(16, dtype=np.int32) * 2  # where the bits of each of sixteen weights begin in four bytes
_POWERS = np.repeat(3 ** np.arange(4), 4).astype(np.int32)  # what carries a digit of each of sixteen weights to the top


def decode_q1_0(raw: Any, out: Any, past: bool) -> None:
    """raw: (blocks, 18) uint8   ->   out: (blocks, 128) float32."""
    block, weights = raw.reshape(-1), out.reshape(-1)
    for b in range(len(raw)):
        d = half_at(block, 18 * b)
        for sub in range(8):
            bits = i64(block[18 * b + 2 + 2 * sub]) | i64(block[18 * b + 3 + 2 * sub]) << 8
            put(weights, 128 * b + 16 * sub, where(condition(bits), every(d), every(-d)), past)


def decode_q2_0(raw: Any, out: Any, past: bool, places: Any) -> None:
    """raw: (blocks, 18) uint8   ->   out: (blocks, 64) float32."""
    block, weights, shifts = raw.reshape(-1), out.reshape(-1), read(places, 0)
    for b in range(len(raw)):
        d = half_at(block, 18 * b)
        for sub in range(4):
            q = every_int(i32(word_at(block, 18 * b + 2 + 4 * sub))) >> shifts & 3
            put(weights, 64 * b + 16 * sub, to_floats(q - 1) * d, past)


def decode_tq2_0(raw: Any, out: Any, past: bool) -> None:
    """raw: (blocks, 66) uint8   ->   out: (blocks, 256) float32."""
    block, weights = raw.reshape(-1), out.reshape(-1)
    for b in range(len(raw)):
        d = half_at(block, 66 * b + 64)
        for half in range(2):
            first, second = unsigned(read(block, 66 * b + 32 * half)), unsigned(read(block, 66 * b + 32 * half + 16))
            for level in range(4):
                place = 256 * b + 128 * half + 32 * level
                put(weights, place, to_floats((first & 3) - 1) * d, past)
                put(weights, place + 16, to_floats((second & 3) - 1) * d, past)
                first, second = first >> 2, second >> 2


@inner
def _digit(fraction: Any) -> Any:
    """The next digit of a number in base 3, and what is left."""
    carried = fraction * 3
    return carried >> 8, carried & 255


def decode_tq1_0(raw: Any, out: Any, past: bool, powers: Any) -> None:
    """raw: (blocks, 54) uint8   ->   out: (blocks, 256) float32."""
    block, weights, carries = raw.reshape(-1), out.reshape(-1), read(powers, 0)
    for b in range(len(raw)):
        at, place = 54 * b, 256 * b
        d = half_at(block, at + 52)
        first, second = unsigned(read(block, at)), unsigned(read(block, at + 16))
        third = unsigned(read(block, at + 32))
        for digit in range(5):
            q, first = _digit(first)
            put(weights, place + 32 * digit, to_floats(q - 1) * d, past)
            q, second = _digit(second)
            put(weights, place + 32 * digit + 16, to_floats(q - 1) * d, past)
        for digit in range(5):
            q, third = _digit(third)
            put(weights, place + 160 + 16 * digit, to_floats(q - 1) * d, past)
        last = u32(word_at(block, at + 48))
        q, _ = _digit(unsigned(in_lanes((last, last, last, last))) * carries & 255)
        put(weights, place + 240, to_floats(q - 1) * d, past)


# ---- encoding


def encode_q1_0(w: Any, out: Any) -> None:
    """w: (blocks, 128) float32   ->   out: (blocks, 18) uint8."""
    x, mean, weights = np.empty((128, N), f32), np.empty((1, N), f32), w.reshape(-1)
    for first in range(0, len(w), N):
        transposed(w, first, x)
        total = every(ZERO)
        for i in range(128):
            total = total + magnitude(load(x, i))
        store(mean, 0, total / f32(128))
        for lane in range(min(N, len(w) - first)):
            block = out[first + lane]
            put_half(block, 0, mean[0, lane])
            for sub in range(8):
                v = read(weights, 128 * (first + lane) + 16 * sub)
                bits = i64(bits_where((v > ZERO) | (v == ZERO)))
                block[2 + 2 * sub], block[3 + 2 * sub] = u8(bits & 255), u8(bits >> 8)


@inner
def _scale(block: Any, lanes: Any) -> Any:
    """The largest magnitude of a block, and 1 over it, 0 for 0.   lanes: (1, 16), overwritten."""
    most = every(ZERO)
    for at in range(0, len(block), N):
        size = magnitude(read(block, at))
        most = where((size > most) | (size != size), size, most)
    store(lanes, 0, most)
    d = ZERO
    for lane in range(N):
        d = lanes[0, lane] if lanes[0, lane] > d or lanes[0, lane] != lanes[0, lane] else d
    return d, ZERO if d == ZERO else ONE / d


@inner
def _three(block: Any, at: Any, inverse: Any) -> Any:
    """``round_to_three`` of sixteen weights: 0, 1 or 2; 1 for what is not finite."""
    v = read(block, at) * inverse
    size, half = magnitude(v), f32(0.5)
    zero = every_int(i32(1))
    found = where(v > ZERO, every_int(i32(2)), every_int(i32(0)))
    return where((size < f32(np.inf)) & ((size > half) | (size == half)), found, zero)


@inner
def _apart(bits: Any) -> Any:
    """Sixteen bits, each with a 0 above it."""
    bits = (bits | bits << 8) & 0x00FF00FF
    bits = (bits | bits << 4) & 0x0F0F0F0F
    bits = (bits | bits << 2) & 0x33333333
    return (bits | bits << 1) & 0x55555555


def encode_q2_0(w: Any, out: Any) -> None:
    """w: (blocks, 64) float32   ->   out: (blocks, 18) uint8."""
    lanes = np.empty((1, N), f32)
    for b in range(len(w)):
        d, inverse = _scale(w[b], lanes)
        put_half(out[b], 0, d)
        for sub in range(4):
            q, bits = _three(w[b], 16 * sub, inverse), i64(0)
            if inverse < f32(np.inf):
                bits = _apart(i64(bits_where(q == 1))) | _apart(i64(bits_where(q == 2))) << 1
            for i in range(4):
                out[b, 2 + 4 * sub + i] = u8(bits >> 8 * i & 255)


def encode_tq2_0(w: Any, out: Any) -> None:
    """w: (blocks, 256) float32   ->   out: (blocks, 66) uint8."""
    lanes = np.empty((1, N), f32)
    for b in range(len(w)):
        d, inverse = _scale(w[b], lanes)
        for part in range(4):
            first = 128 * (part // 2) + 16 * (part % 2)
            q = _three(w[b], first, inverse)
            for level in range(1, 4):
                q = q | _three(w[b], first + 32 * level, inverse) << 2 * level
            write(out[b], 16 * part, bytes_of(q))
        put_half(out[b], 64, d)


@inner
def _fraction(n: Any) -> Any:
    """n × 256 / 243, rounded up, for a number of five digits in base 3."""
    return ((n << 8) + 242) * 17261 >> 22


def encode_tq1_0(w: Any, out: Any) -> None:
    """w: (blocks, 256) float32   ->   out: (blocks, 54) uint8."""
    lanes, last = np.empty((1, N), f32), np.empty((1, N), i32)
    for b in range(len(w)):
        d, inverse = _scale(w[b], lanes)
        for part in range(3):  # sixteen bytes
            first, stride = (16 * part, 32) if part < 2 else (160, 16)
            n = _three(w[b], first, inverse)
            for digit in range(1, 5):
                n = n * 3 + _three(w[b], first + stride * digit, inverse)
            write(out[b], 16 * part, bytes_of(_fraction(n)))
        store(last, 0, _three(w[b], 240, inverse))
        for i in range(4):
            n = ((last[0, i] * 3 + last[0, i + 4]) * 3 + last[0, i + 8]) * 3 + last[0, i + 12]
            out[b, 48 + i] = u8(_fraction(n * 3))
        put_half(out[b], 52, d)


for _name, _encode in (("Q1_0", encode_q1_0), ("Q2_0", encode_q2_0), ("TQ1_0", encode_tq1_0), ("TQ2_0", encode_tq2_0)):
    FORMS[GGMLType[_name], ENCODE] = Form(_encode)
FORMS[GGMLType.Q1_0, DECODE] = Form(decode_q1_0)
FORMS[GGMLType.Q2_0, DECODE] = Form(decode_q2_0, (_PLACES,))
FORMS[GGMLType.TQ1_0, DECODE] = Form(decode_tq1_0, (_POWERS,))
FORMS[GGMLType.TQ2_0, DECODE] = Form(decode_tq2_0)
