"""Blocks of weights taken apart into bytes and scales, a few rows at a time: the tile that activations meet.

Of every 64 weights a tile holds 64 integers without a sign, and 16 floats: float i is the scale of weights 4i to
4i + 3. Where the integers of a type have a sign, they are raised first, and ``activations`` takes that off again. At
the end of a row stand the mins, one for each 32 weights, in a type that has them.

Each function is given the address of a row of blocks, that of a row of the tile, and the number of weights.

Source: ``dequantize_row_*`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable

from .lanes import (
    bits32,
    bytes16,
    bytes32,
    eight,
    every_float8,
    four0,
    four1,
    four2,
    four3,
    half_at,
    join,
    pair0,
    pair1,
    pair2,
    pair3,
    signed,
    store,
    unsigned,
    word_at,
)

_SIX, _FOUR, _TWO = 0x3F3F3F3F, 0x0F0F0F0F, 0x03030303  # the lowest bits of each byte of a word


@register_jitable
def nibbles(w: int) -> Any:
    """Sixteen bytes as 32 weights: the low halves, then the high ones."""
    packed = bytes16(w)
    return join(packed & 15, packed >> 4)


@register_jitable
def place_of(row: int, b: int) -> int:
    """Where block ``b`` of 32 weights begins in a row of a tile; its scales come 64 bytes later."""
    return row + b // 2 * 128 + b % 2 * 32


@register_jitable
def q8_0(w: int, row: int, n: int) -> None:
    """Signed bytes, raised by 128."""
    for b in range(n // 32):
        at, place = w + 34 * b, place_of(row, b)
        store(place, bytes32(at + 2) ^ 128)
        store(place + 64, every_float8(half_at(at)))


@register_jitable
def q4_0(w: int, row: int, n: int) -> None:
    """Nibbles, raised by 8 as they are."""
    for b in range(n // 32):
        at, place = w + 18 * b, place_of(row, b)
        store(place, nibbles(at + 2))
        store(place + 64, every_float8(half_at(at)))


@register_jitable
def q4_1(w: int, row: int, mins: int, n: int) -> None:
    """Nibbles and a min."""
    for b in range(n // 32):
        at, place = w + 20 * b, place_of(row, b)
        store(place, nibbles(at + 4))
        store(place + 64, every_float8(half_at(at)))
        store(mins + 4 * b, half_at(at + 2))


@register_jitable
def q5_0(w: int, row: int, n: int) -> None:
    """A fifth bit each, raised by 16 as they are."""
    for b in range(n // 32):
        at, place = w + 22 * b, place_of(row, b)
        store(place, nibbles(at + 6) | bits32(at + 2) << 4)
        store(place + 64, every_float8(half_at(at)))


@register_jitable
def q5_1(w: int, row: int, mins: int, n: int) -> None:
    """A fifth bit each, and a min."""
    for b in range(n // 32):
        at, place = w + 24 * b, place_of(row, b)
        store(place, nibbles(at + 8) | bits32(at + 4) << 4)
        store(place + 64, every_float8(half_at(at)))
        store(mins + 4 * b, half_at(at + 2))


@register_jitable
def scales_and_mins(at: int, place: int, mins: int) -> None:
    """The eight scales of a super-block of Q4_K or Q5_K, and its mins.   at: the address of d."""
    s0, s1, s2 = word_at(at + 4), word_at(at + 8), word_at(at + 12)
    scales = eight(s0 & _SIX, s2 & _FOUR | (s0 >> 6 & _TWO) << 4)
    least = eight(s1 & _SIX, s2 >> 4 & _FOUR | (s1 >> 6 & _TWO) << 4)
    store(mins, unsigned(least) * -half_at(at + 2))
    factors = unsigned(scales) * half_at(at)
    store(place + 64, pair0(factors))
    store(place + 192, pair1(factors))
    store(place + 320, pair2(factors))
    store(place + 448, pair3(factors))


@register_jitable
def q4_k(w: int, row: int, mins: int, n: int) -> None:
    """Nibbles in runs of 32: low halves, high halves."""
    for b in range(n // 256):
        at, place = w + 144 * b, row + 512 * b
        scales_and_mins(at, place, mins + 32 * b)
        for chunk in range(4):
            packed = bytes32(at + 16 + 32 * chunk)
            store(place + 128 * chunk, join(packed & 15, packed >> 4))


@register_jitable
def q5_k(w: int, row: int, mins: int, n: int) -> None:
    """As Q4_K, and bit s of byte j is the fifth bit of weight j in sub-block s."""
    for b in range(n // 256):
        at, place = w + 176 * b, row + 512 * b
        scales_and_mins(at, place, mins + 32 * b)
        high = bytes32(at + 16)
        for chunk in range(4):
            packed = bytes32(at + 48 + 32 * chunk)
            low = packed & 15 | (high & 1) << 4
            store(place + 128 * chunk, join(low, packed >> 4 | (high >> 1 & 1) << 4))
            high = high >> 2


@register_jitable
def q6_k(w: int, row: int, n: int) -> None:
    """Four low bits and two high ones, raised by 32 as they are; sub-blocks of 16."""
    for b in range(n // 256):
        at, place = w + 210 * b, row + 512 * b
        d = half_at(at + 208)
        scales = signed(bytes16(at + 192)) * d
        store(place + 64, four0(scales))
        store(place + 192, four1(scales))
        store(place + 320, four2(scales))
        store(place + 448, four3(scales))
        for half in range(2):
            low, low2, high = bytes32(at + 64 * half), bytes32(at + 64 * half + 32), bytes32(at + 128 + 32 * half)
            first = place + 256 * half
            store(first, join(low & 15 | (high & 3) << 4, low2 & 15 | (high >> 2 & 3) << 4))
            store(first + 128, join(low >> 4 | (high >> 4 & 3) << 4, low2 >> 4 | (high >> 6) << 4))
