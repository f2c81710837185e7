"""Blocks decoded: the types of small blocks, the K-quants, and floats that are no blocks.

Sixteen weights at a time are in a register. Each operation is the one of the numpy form, in its order, so that the
values are equal bit for bit. Every function takes ``past``: whether the weights are to be written past the caches.
"""

# mypy: disable-error-code="no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from ..types import GGMLType
from . import DECODE, FORMS, Form
from .bits import from_half, half_at, word_at
from .vectors import (
    bits_of,
    condition,
    every_int,
    floats_of,
    inner,
    read,
    signed,
    to_floats,
    unsigned,
    where,
    write,
    write_past,
)

f32, i8, i32, u32 = np.float32, np.int8, np.int32, np.uint32
Q4_0, Q4_1, Q5_0, Q5_1 = 2, 3, 6, 7  # ggml's numbers
SIX, FOUR, TWO = 0x3F3F3F3F, 0x0F0F0F0F, 0x03030303  # the lowest bits of each byte of a word


@inner
def put(out: Any, at: Any, weights: Any, past: Any) -> None:
    """Write sixteen weights.   out: (weights of all blocks,) float32; at: the first of the sixteen."""
    if past and out.ctypes.data % 16 == 0:
        write_past(out, at, weights)
    else:
        write(out, at, weights)


@inner
def set_where(bits: Any, bit: Any) -> Any:
    """The integer ``bit`` in the lanes whose bit is set, else 0."""
    return where(condition(bits), every_int(i32(bit)), every_int(i32(0)))


def decode_nibbles(raw: Any, out: Any, past: bool, kind: int) -> None:
    """Q4_0, Q4_1, Q5_0, Q5_1.   raw: (blocks, bytes) uint8   ->   out: (blocks, 32) float32."""
    five, mins = kind in (Q5_0, Q5_1), kind in (Q4_1, Q5_1)
    head, size, middle = 4 if mins else 2, raw.shape[1], 16 if five else 8
    block, weights = raw.reshape(-1), out.reshape(-1)
    for b in range(len(raw)):
        at = b * size
        d, q = half_at(block, at), read(block, at + size - 16)
        low, high = unsigned(q & 15), unsigned(q >> 4)
        if five:
            bits = word_at(block, at + head)
            low, high = low | set_where(bits, 16), high | set_where(bits >> 16, 16)
        if mins:
            m = half_at(block, at + 2)
            put(weights, 32 * b, to_floats(low) * d + m, past)
            put(weights, 32 * b + 16, to_floats(high) * d + m, past)
        else:
            put(weights, 32 * b, to_floats(low - middle) * d, past)
            put(weights, 32 * b + 16, to_floats(high - middle) * d, past)


def decode_q8_0(raw: Any, out: Any, past: bool) -> None:
    """raw: (blocks, 34) uint8   ->   out: (blocks, 32) float32."""
    block, weights = raw.reshape(-1), out.reshape(-1)
    for b in range(len(raw)):
        d = half_at(block, 34 * b)
        put(weights, 32 * b, to_floats(signed(read(block, 34 * b + 2))) * d, past)
        put(weights, 32 * b + 16, to_floats(signed(read(block, 34 * b + 18))) * d, past)


def decode_f16(raw: Any, out: Any, past: bool) -> None:
    """raw: (n, 2) uint8   ->   out: (n, 1) float32."""
    bits, weights = raw.reshape(-1).view(np.uint16), out.reshape(-1)
    whole = len(weights) // 16 * 16
    for i in range(0, whole, 16):
        h = unsigned(read(bits, i))
        size, exponent = (h & 0x7FFF) << 13, h & 0x7C00
        small = bits_of(to_floats(h & 0x3FF) * f32(2.0**-24))
        found = where(exponent == 0x7C00, size | 0x7F800000, where(exponent == 0, small, size + (112 << 23)))
        put(weights, i, floats_of(found | (h & 0x8000) << 16), past)
    for i in range(whole, len(weights)):
        weights[i] = from_half(bits[i])


def decode_bf16(raw: Any, out: Any, past: bool) -> None:
    """raw: (n, 2) uint8   ->   out: (n, 1) float32."""
    bits, weights = raw.reshape(-1).view(np.uint16), out.reshape(-1)
    whole = len(weights) // 16 * 16
    for i in range(0, whole, 16):
        put(weights, i, floats_of(unsigned(read(bits, i)) << 16), past)
    for i in range(whole, len(weights)):
        weights[i] = u32(u32(bits[i]) << u32(16)).view(f32)


def decode_q4_k_q5_k(raw: Any, out: Any, past: bool, five: int) -> None:
    """raw: (blocks, 144 or 176) uint8   ->   out: (blocks, 256) float32."""
    block, weights, size = raw.reshape(-1), out.reshape(-1), raw.shape[1]
    for b in range(len(raw)):
        at = b * size
        d, dmin = half_at(block, at), half_at(block, at + 2)
        s, m, more = word_at(block, at + 4), word_at(block, at + 8), word_at(block, at + 12)
        fifth, fifth2 = read(block, at + 16), read(block, at + 32)  # of Q5_K
        for half in range(2):
            scales, mins = s & SIX, m & SIX
            if half:
                scales = more & FOUR | (s >> 6 & TWO) << 4
                mins = more >> 4 & FOUR | (m >> 6 & TWO) << 4
            for sub in range(4 * half, 4 * half + 4, 2):
                q, place = at + size - 128 + 16 * sub, 256 * b + 32 * sub
                scale, least = d * f32(scales & 255), dmin * f32(mins & 255)
                scale2, least2 = d * f32(scales >> 8 & 255), dmin * f32(mins >> 8 & 255)
                scales, mins = scales >> 16, mins >> 16
                first, second = read(block, q), read(block, q + 16)
                low, low2 = unsigned(first & 15), unsigned(second & 15)
                high, high2 = unsigned(first >> 4), unsigned(second >> 4)
                if five:
                    bits, bits2 = unsigned(fifth) << 4 >> sub, unsigned(fifth2) << 4 >> sub
                    low, low2, high, high2 = (
                        low | bits & 16,
                        low2 | bits2 & 16,
                        high | bits >> 1 & 16,
                        high2 | bits2 >> 1 & 16,
                    )
                put(weights, place, to_floats(low) * scale - least, past)
                put(weights, place + 16, to_floats(low2) * scale - least, past)
                put(weights, place + 32, to_floats(high) * scale2 - least2, past)
                put(weights, place + 48, to_floats(high2) * scale2 - least2, past)


def decode_q2_k(raw: Any, out: Any, past: bool) -> None:
    """raw: (blocks, 84) uint8   ->   out: (blocks, 256) float32."""
    block, weights = raw.reshape(-1), out.reshape(-1)
    for b in range(len(raw)):
        at = 84 * b
        d, dmin = half_at(block, at + 80), half_at(block, at + 82)
        for half in range(2):
            first, second = unsigned(read(block, at + 16 + 32 * half)), unsigned(read(block, at + 32 + 32 * half))
            for sub in range(8 * half, 8 * half + 8, 2):  # two bits of each byte
                s, s2, place = block[at + sub], block[at + sub + 1], 256 * b + 16 * sub
                put(weights, place, to_floats(first & 3) * (d * f32(s & 15)) - dmin * f32(s >> 4), past)
                put(weights, place + 16, to_floats(second & 3) * (d * f32(s2 & 15)) - dmin * f32(s2 >> 4), past)
                first, second = first >> 2, second >> 2


@inner
def _scale_of_q3_k(block: Any, at: Any, sub: Any) -> Any:
    low = i32(block[at + sub % 8]) >> 4 * (sub // 8) & 15
    return f32((low | (i32(block[at + 8 + sub % 4]) >> 2 * (sub // 4) & 3) << 4) - 32)


def decode_q3_k(raw: Any, out: Any, past: bool) -> None:
    """raw: (blocks, 110) uint8   ->   out: (blocks, 256) float32."""
    block, weights = raw.reshape(-1), out.reshape(-1)
    for b in range(len(raw)):
        at = 110 * b
        d, s = half_at(block, at + 108), at + 96
        bits, bits2 = unsigned(read(block, at)) << 2, unsigned(read(block, at + 16)) << 2  # of the mask
        for half in range(2):
            first, second = unsigned(read(block, at + 32 + 32 * half)), unsigned(read(block, at + 48 + 32 * half))
            for sub in range(8 * half, 8 * half + 8, 2):  # two bits of each byte, and one of the mask
                scale, scale2 = _scale_of_q3_k(block, s, sub) * d, _scale_of_q3_k(block, s, sub + 1) * d
                place = 256 * b + 16 * sub
                put(weights, place, to_floats((first & 3 | bits & 4) - 4) * scale, past)
                put(weights, place + 16, to_floats((second & 3 | bits2 & 4) - 4) * scale2, past)
                first, second, bits, bits2 = first >> 2, second >> 2, bits >> 1, bits2 >> 1


def decode_q6_k(raw: Any, out: Any, past: bool) -> None:
    """raw: (blocks, 210) uint8   ->   out: (blocks, 256) float32."""
    block, weights = raw.reshape(-1), out.reshape(-1)
    for b in range(len(raw)):
        at = 210 * b
        d = half_at(block, at + 208)
        for half in range(2):
            bits = unsigned(read(block, at + 128 + 32 * half)) << 4
            bits2 = unsigned(read(block, at + 144 + 32 * half)) << 4
            for quarter in range(4):
                q, sub = at + 64 * half + 32 * (quarter % 2), 8 * half + 2 * quarter
                first, second = unsigned(read(block, q)), unsigned(read(block, q + 16))
                first, second = first >> quarter // 2 * 4 & 15, second >> quarter // 2 * 4 & 15
                scale, scale2 = d * f32(i8(block[at + 192 + sub])), d * f32(i8(block[at + 193 + sub]))
                put(weights, 256 * b + 16 * sub, to_floats((first | bits & 48) - 32) * scale, past)
                put(weights, 256 * b + 16 * sub + 16, to_floats((second | bits2 & 48) - 32) * scale2, past)
                bits, bits2 = bits >> 2, bits2 >> 2


for _kind in (Q4_0, Q4_1, Q5_0, Q5_1):
    FORMS[GGMLType(_kind), DECODE] = Form(decode_nibbles, (_kind,))
FORMS[GGMLType.Q8_0, DECODE] = Form(decode_q8_0)
FORMS[GGMLType.F16, DECODE] = Form(decode_f16)
FORMS[GGMLType.BF16, DECODE] = Form(decode_bf16)
FORMS[GGMLType.Q2_K, DECODE] = Form(decode_q2_k)
FORMS[GGMLType.Q3_K, DECODE] = Form(decode_q3_k)
FORMS[GGMLType.Q4_K, DECODE] = Form(decode_q4_k_q5_k, (0,))
FORMS[GGMLType.Q5_K, DECODE] = Form(decode_q4_k_q5_k, (1,))
FORMS[GGMLType.Q6_K, DECODE] = Form(decode_q6_k)
