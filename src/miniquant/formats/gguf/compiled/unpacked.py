"""Blocks decoded, and floats that are no blocks: plain loops, which LLVM makes vectors of.

The innermost loop runs over ``len`` of what it fills: a loop of a fixed length would be unrolled, not vectorized. Each
operation is the one of the numpy form, in its order, so that the values are equal bit for bit.
"""

# mypy: disable-error-code="no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from ..codecs.iq4_nl import LEVELS
from ..types import GGMLType
from . import DECODE, FORMS, Form
from .bits import half_at
from .vectors import inner

f32, i8, i32, u32 = np.float32, np.int8, np.int32, np.uint32
Q4_0, Q4_1, Q5_0, Q5_1 = 2, 3, 6, 7  # ggml's numbers
Q2_K, Q3_K, Q4_K, Q5_K, Q6_K = 10, 11, 12, 13, 14


def decode_nibbles(raw: Any, out: Any, kind: int) -> None:
    """Q4_0, Q4_1, Q5_0, Q5_1.   raw: (blocks, bytes) uint8   ->   out: (blocks, 32) float32."""
    five, mins = kind in (Q5_0, Q5_1), kind in (Q4_1, Q5_1)
    at = (4 if mins else 2) + (4 if five else 0)
    middle = i32(0 if mins else 16 if five else 8)
    for b in range(len(raw)):
        block = raw[b]
        d = half_at(block, 0)
        q, low, high = block[at:], out[b, :16], out[b, 16:]
        if five:
            bits = u32(block[at - 4]) | u32(block[at - 3]) << u32(8) | u32(block[at - 2]) << u32(16)
            bits = u32(bits | u32(block[at - 1]) << u32(24))
            if mins:
                m = half_at(block, 2)
                for i in range(len(low)):
                    low[i] = f32(i32(q[i] & 15) | i32(bits >> u32(i) & u32(1)) << 4) * d + m
                for i in range(len(high)):
                    high[i] = f32(i32(q[i] >> 4) | i32(bits >> u32(i + 16) & u32(1)) << 4) * d + m
            else:
                for i in range(len(low)):
                    low[i] = f32((i32(q[i] & 15) | i32(bits >> u32(i) & u32(1)) << 4) - middle) * d
                for i in range(len(high)):
                    high[i] = f32((i32(q[i] >> 4) | i32(bits >> u32(i + 16) & u32(1)) << 4) - middle) * d
        elif mins:
            m = half_at(block, 2)
            for i in range(len(low)):
                low[i] = f32(i32(q[i] & 15)) * d + m
            for i in range(len(high)):
                high[i] = f32(i32(q[i] >> 4)) * d + m
        else:
            for i in range(len(low)):
                low[i] = f32(i32(q[i] & 15) - middle) * d
            for i in range(len(high)):
                high[i] = f32(i32(q[i] >> 4) - middle) * d


def decode_q8_0(raw: Any, out: Any) -> None:
    """raw: (blocks, 34) uint8   ->   out: (blocks, 32) float32."""
    for b in range(len(raw)):
        d, q, found = half_at(raw[b], 0), raw[b, 2:], out[b]
        for i in range(len(found)):
            found[i] = f32(i32(i8(q[i]))) * d


def decode_f16(raw: Any, out: Any) -> None:
    """raw: (n, 2) uint8   ->   out: (n, 1) float32. Without a branch, so that it becomes vectors."""
    bits, found = raw.reshape(-1).view(np.uint16), out.reshape(-1).view(u32)
    for i in range(len(found)):
        h = u32(bits[i])
        size, exponent = u32((h & u32(0x7FFF)) << u32(13)), h & u32(0x7C00)
        small = f32(f32(i32(h & u32(0x3FF))) * f32(2.0**-24)).view(u32)
        large = u32(size | u32(0x7F800000))
        plain = u32(size + u32(112 << 23))
        chosen = large if exponent == u32(0x7C00) else small if exponent == 0 else plain
        found[i] = u32(chosen | (h & u32(0x8000)) << u32(16))


def decode_bf16(raw: Any, out: Any) -> None:
    """raw: (n, 2) uint8   ->   out: (n, 1) float32."""
    bits, found = raw.reshape(-1).view(np.uint16), out.reshape(-1).view(u32)
    for i in range(len(found)):
        found[i] = u32(bits[i]) << u32(16)


def decode_iq4(raw: Any, out: Any, levels: Any) -> None:
    """IQ4_NL (blocks, 18) or IQ4_XS (blocks, 136)   ->   out: (blocks, 32) or (blocks, 256) float32."""
    for b in range(len(raw)):
        block = raw[b]
        d = half_at(block, 0)
        for sub in range(out.shape[1] // 32):
            scale, q = d, block[2:]
            if out.shape[1] == 256:
                low = i32(block[4 + sub // 2]) >> 4 * (sub % 2) & 15
                high = (i32(block[2]) | i32(block[3]) << 8) >> 2 * sub & 3
                scale, q = d * f32(f32(low | high << 4) - f32(32)), block[8 + 16 * sub :]
            first, second = out[b, 32 * sub : 32 * sub + 16], out[b, 32 * sub + 16 : 32 * sub + 32]
            for i in range(len(first)):
                first[i] = levels[q[i] & 15] * scale
            for i in range(len(second)):
                second[i] = levels[q[i] >> 4] * scale


@inner
def _six_bits(s: Any, sub: Any) -> Any:
    """The scale and the min of a sub-block of Q4_K and Q5_K.   s: (12,) uint8."""
    if sub < 4:
        return i32(s[sub] & 63), i32(s[sub + 4] & 63)
    return i32(s[sub + 4] & 15 | s[sub - 4] >> 6 << 4), i32(s[sub + 4] >> 4 | s[sub] >> 6 << 4)


def decode_q4_k_q5_k(raw: Any, out: Any, five: int) -> None:
    """raw: (blocks, 144 or 176) uint8   ->   out: (blocks, 256) float32."""
    for b in range(len(raw)):
        block = raw[b]
        d, dmin, bits = half_at(block, 0), half_at(block, 2), block[16:48]
        for sub in range(8):
            sc, m = _six_bits(block[4:16], sub)
            scale, least = d * f32(sc), dmin * f32(m)
            q, found, shift = (
                block[(48 if five else 16) + sub // 2 * 32 :],
                out[b, 32 * sub : 32 * sub + 32],
                4 * (sub % 2),
            )
            if five:
                for i in range(len(found)):
                    found[i] = f32(i32(q[i]) >> shift & 15 | (i32(bits[i]) >> sub & 1) << 4) * scale - least
            elif shift:
                for i in range(len(found)):
                    found[i] = f32(i32(q[i] >> 4)) * scale - least
            else:
                for i in range(len(found)):
                    found[i] = f32(i32(q[i] & 15)) * scale - least


def decode_q2_k(raw: Any, out: Any) -> None:
    """raw: (blocks, 84) uint8   ->   out: (blocks, 256) float32."""
    for b in range(len(raw)):
        block = raw[b]
        d, dmin = half_at(block, 80), half_at(block, 82)
        for sub in range(16):
            scale, least = d * f32(i32(block[sub] & 15)), dmin * f32(i32(block[sub] >> 4))
            q, found, shift = (
                block[16 + sub // 8 * 32 + sub % 2 * 16 :],
                out[b, 16 * sub : 16 * sub + 16],
                sub // 2 % 4 * 2,
            )
            for i in range(len(found)):
                found[i] = f32(i32(q[i]) >> shift & 3) * scale - least


def decode_q3_k(raw: Any, out: Any) -> None:
    """raw: (blocks, 110) uint8   ->   out: (blocks, 256) float32."""
    for b in range(len(raw)):
        block = raw[b]
        d, mask, s = half_at(block, 108), block[:32], block[96:108]
        for sub in range(16):
            sc = i32(s[sub % 8]) >> 4 * (sub // 8) & 15 | (i32(s[8 + sub % 4]) >> 2 * (sub // 4) & 3) << 4
            scale, shift, bit = d * f32(sc - 32), sub // 2 % 4 * 2, sub // 2
            q, high = block[32 + sub // 8 * 32 + sub % 2 * 16 :], mask[sub % 2 * 16 :]
            found = out[b, 16 * sub : 16 * sub + 16]
            for i in range(len(found)):
                found[i] = f32((i32(q[i]) >> shift & 3 | (i32(high[i]) >> bit & 1) << 2) - 4) * scale


def decode_q6_k(raw: Any, out: Any) -> None:
    """raw: (blocks, 210) uint8   ->   out: (blocks, 256) float32."""
    for b in range(len(raw)):
        block = raw[b]
        d = half_at(block, 208)
        for sub in range(16):
            half, quarter, sixteen = sub // 8, sub // 2 % 4, sub % 2
            scale, found = d * f32(i32(i8(block[192 + sub]))), out[b, 16 * sub : 16 * sub + 16]
            ql, qh = block[64 * half + quarter % 2 * 32 + 16 * sixteen :], block[128 + 32 * half + 16 * sixteen :]
            low, high = 4 * (quarter // 2), 2 * quarter
            for i in range(len(found)):
                found[i] = f32((i32(ql[i]) >> low & 15 | (i32(qh[i]) >> high & 3) << 4) - 32) * scale


for _kind in (Q4_0, Q4_1, Q5_0, Q5_1):
    FORMS[GGMLType(_kind), DECODE] = Form(decode_nibbles, (_kind,))
FORMS[GGMLType.Q8_0, DECODE] = Form(decode_q8_0)
FORMS[GGMLType.F16, DECODE] = Form(decode_f16)
FORMS[GGMLType.BF16, DECODE] = Form(decode_bf16)
for _name in ("IQ4_NL", "IQ4_XS"):
    FORMS[GGMLType[_name], DECODE] = Form(decode_iq4, (LEVELS,))
FORMS[GGMLType.Q2_K, DECODE] = Form(decode_q2_k)
FORMS[GGMLType.Q3_K, DECODE] = Form(decode_q3_k)
FORMS[GGMLType.Q4_K, DECODE] = Form(decode_q4_k_q5_k, (0,))
FORMS[GGMLType.Q5_K, DECODE] = Form(decode_q4_k_q5_k, (1,))
FORMS[GGMLType.Q6_K, DECODE] = Form(decode_q6_k)
