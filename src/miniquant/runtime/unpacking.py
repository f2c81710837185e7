"""Blocks of weights taken apart into registers of bytes, and those written to a tile, which activations meet.

Of every 64 weights a tile holds 64 integers without a sign, and 16 floats: float i is the scale of weights 4i to
4i + 3. Where the integers of a type have a sign, they are raised first, and ``activations`` takes that off again. At
the end of a row stand the mins, one for each 32 weights, in a type that has them.

There are two sorts of types. In one, a block is 32 weights, and begins with a scale and, where there is one, a min; its
function is given the block's address and returns 32 integers. In the other, a block is 256 weights; there is a function
for the integers, four times 64, and one for the scales.

Source: ``dequantize_row_*`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from .lanes import (
    bits32,
    bytes16,
    bytes32,
    eight,
    every_half8,
    every_half16,
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

f32 = np.float32
_SIX, _FOUR, _TWO = 0x3F3F3F3F, 0x0F0F0F0F, 0x03030303  # the lowest bits of each byte of a word


# ---- blocks of 32


@register_jitable
def nibbles(w: int) -> Any:
    """Sixteen bytes as 32 weights: the low halves, then the high ones."""
    packed = bytes16(w)
    return join(packed & 15, packed >> 4)


@register_jitable
def q8_0(at: int) -> Any:
    """Signed bytes, raised by 128."""
    return bytes32(at + 2) ^ 128


@register_jitable
def q4_0(at: int) -> Any:
    """Nibbles, raised by 8 as they are."""
    return nibbles(at + 2)


@register_jitable
def q4_1(at: int) -> Any:
    """Nibbles; the block has a min."""
    return nibbles(at + 4)


@register_jitable
def q5_0(at: int) -> Any:
    """A fifth bit each, raised by 16 as they are."""
    return nibbles(at + 6) | bits32(at + 2) << 4


@register_jitable
def q5_1(at: int) -> Any:
    """A fifth bit each; the block has a min."""
    return nibbles(at + 8) | bits32(at + 4) << 4


# ---- blocks of 256


@register_jitable
def scales_and_mins(at: int, mins: int) -> Any:
    """The four registers of scales of a block of Q4_K or Q5_K. Its eight mins are written to the address ``mins``."""
    s0, s1, s2 = word_at(at + 4), word_at(at + 8), word_at(at + 12)
    scales = eight(s0 & _SIX, s2 & _FOUR | (s0 >> 6 & _TWO) << 4)
    least = eight(s1 & _SIX, s2 >> 4 & _FOUR | (s1 >> 6 & _TWO) << 4)
    store(mins, unsigned(least) * every_half8(at + 2) * f32(-1))
    factors = unsigned(scales) * every_half8(at)
    return pair0(factors), pair1(factors), pair2(factors), pair3(factors)


@register_jitable
def scales_of_16(at: int, mins: int) -> Any:
    """The four registers of scales of a block of Q6_K, whose sub-blocks are 16 weights; it has no mins."""
    factors = signed(bytes16(at + 192)) * every_half16(at + 208)
    return four0(factors), four1(factors), four2(factors), four3(factors)


@register_jitable
def two_runs(packed: Any) -> Any:
    """Nibbles in runs of 32: low halves, high halves."""
    return join(packed & 15, packed >> 4)


@register_jitable
def q4_k(at: int) -> Any:
    """Nibbles; the block has mins."""
    return (
        two_runs(bytes32(at + 16)),
        two_runs(bytes32(at + 48)),
        two_runs(bytes32(at + 80)),
        two_runs(bytes32(at + 112)),
    )


@register_jitable
def fifth_bits(high: Any) -> Any:
    """Of 32 bytes the lowest bit, then the one above it, in the place that a fifth bit of a weight has."""
    return join((high & 1) << 4, (high >> 1 & 1) << 4)


@register_jitable
def q5_k(at: int) -> Any:
    """As Q4_K, and bit s of byte j is the fifth bit of weight j in sub-block s."""
    high = bytes32(at + 16)
    return (
        two_runs(bytes32(at + 48)) | fifth_bits(high),
        two_runs(bytes32(at + 80)) | fifth_bits(high >> 2),
        two_runs(bytes32(at + 112)) | fifth_bits(high >> 4),
        two_runs(bytes32(at + 144)) | fifth_bits(high >> 6),
    )


@register_jitable
def q6_k(at: int) -> Any:
    """Four low bits and two high ones, raised by 32 as they are."""
    low, low2, high = bytes32(at), bytes32(at + 32), bytes32(at + 128)
    low3, low4, high2 = bytes32(at + 64), bytes32(at + 96), bytes32(at + 160)
    return (
        join(low & 15 | (high & 3) << 4, low2 & 15 | (high >> 2 & 3) << 4),
        join(low >> 4 | (high >> 4 & 3) << 4, low2 >> 4 | (high >> 6) << 4),
        join(low3 & 15 | (high2 & 3) << 4, low4 & 15 | (high2 >> 2 & 3) << 4),
        join(low3 >> 4 | (high2 >> 4 & 3) << 4, low4 >> 4 | (high2 >> 6) << 4),
    )


# ---- a row of blocks into a row of a tile: functions of both addresses, that of the mins, and the number of weights


def to_tile_by_32(block: Callable[[int], Any], size: int, with_mins: bool) -> Any:
    """The function for a type of 32 weights and ``size`` bytes a block."""

    @register_jitable
    def unpack(w: int, row: int, mins: int, n: int) -> None:
        for b in range(n // 32):
            at, place = w + size * b, row + b // 2 * 128 + b % 2 * 32
            store(place, block(at))
            store(place + 64, every_half8(at))
            if with_mins:
                store(mins + 4 * b, half_at(at + 2))

    return unpack


def to_tile_by_256(block: Callable[[int], Any], scales: Callable[[int, int], Any], size: int) -> Any:
    """The function for a type of 256 weights and ``size`` bytes a block."""

    @register_jitable
    def unpack(w: int, row: int, mins: int, n: int) -> None:
        for b in range(n // 256):
            at, place = w + size * b, row + 512 * b
            q0, q1, q2, q3 = block(at)
            s0, s1, s2, s3 = scales(at, mins + 32 * b)
            store(place, q0)
            store(place + 64, s0)
            store(place + 128, q1)
            store(place + 192, s1)
            store(place + 256, q2)
            store(place + 320, s2)
            store(place + 384, q3)
            store(place + 448, s3)

    return unpack


# ---- the types


class Form(NamedTuple):
    """How the blocks of a type are taken apart. Without ``scales``, a block is 32 weights; else it is 256."""

    block: Any
    size: int
    raised: int = 0
    with_mins: bool = False
    scales: Any = None

    @property
    def to_tile(self) -> Any:
        """The function that takes a row apart."""
        if self.scales is None:
            return to_tile_by_32(self.block, self.size, self.with_mins)
        return to_tile_by_256(self.block, self.scales, self.size)


FORMS = {  # by ggml's numbers
    8: Form(q8_0, 34, raised=128),
    2: Form(q4_0, 18, raised=8),
    3: Form(q4_1, 20, with_mins=True),
    6: Form(q5_0, 22, raised=16),
    7: Form(q5_1, 24, with_mins=True),
    12: Form(q4_k, 144, with_mins=True, scales=scales_and_mins),
    13: Form(q5_k, 176, with_mins=True, scales=scales_and_mins),
    14: Form(q6_k, 210, raised=32, scales=scales_of_16),
}


def one_of(functions: dict[int, Any]) -> Any:
    """One function in place of several: what it is given first says which. numba compiles no dict of functions."""
    (number, function), *others = functions.items()
    if not others:
        return register_jitable(lambda kind, *given: function(*given))
    other = one_of(dict(others))

    @register_jitable
    def chosen(kind: int, *given: Any) -> Any:
        if kind == number:
            return function(*given)
        return other(kind, *given)

    return chosen


to_tile = one_of({kind: form.to_tile for kind, form in FORMS.items()})
