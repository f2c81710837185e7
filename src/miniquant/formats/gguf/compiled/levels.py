"""Nibbles that are indices into sixteen levels, decoded: IQ4_NL, IQ4_XS, and the floats of four bits."""

# mypy: disable-error-code="no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from ..codecs.four_bit_floats import VALUES, power_of_two
from ..codecs.iq4_nl import LEVELS
from ..codecs.nvfp4 import from_e4m3
from ..types import GGMLType
from . import DECODE, FORMS, Form
from .bits import half_at, word_at
from .unpacked import put
from .vectors import in_lanes, inner, looked_up, read, unsigned

f32, i64, u32 = np.float32, np.int64, np.uint32
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


_BYTES = np.arange(256, dtype=np.uint8)
FORMS[GGMLType.IQ4_NL, DECODE] = Form(decode_iq4_nl, (LEVELS,))
FORMS[GGMLType.IQ4_XS, DECODE] = Form(decode_iq4_xs, (LEVELS,))
FORMS[GGMLType.MXFP4, DECODE] = Form(decode_mxfp4, (VALUES, power_of_two(_BYTES)))
FORMS[GGMLType.NVFP4, DECODE] = Form(decode_nvfp4, (VALUES, from_e4m3(_BYTES) / f32(2)))
