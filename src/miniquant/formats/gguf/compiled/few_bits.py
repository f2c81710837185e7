"""Weights of one bit or two, or of a third of eight, decoded: Q1_0, Q2_0, TQ1_0, TQ2_0."""

# mypy: disable-error-code="no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from ..types import GGMLType
from . import DECODE, FORMS, Form
from .bits import half_at, word_at
from .unpacked import put
from .vectors import condition, every, every_int, in_lanes, inner, read, to_floats, unsigned, where

i32, i64, u32 = np.int32, np.int64, np.uint32
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


FORMS[GGMLType.Q1_0, DECODE] = Form(decode_q1_0)
FORMS[GGMLType.Q2_0, DECODE] = Form(decode_q2_0, (_PLACES,))
FORMS[GGMLType.TQ1_0, DECODE] = Form(decode_tq1_0, (_POWERS,))
FORMS[GGMLType.TQ2_0, DECODE] = Form(decode_tq2_0)
