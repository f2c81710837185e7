"""IQ2 and IQ3 decoded: points of a codebook, eight magnitudes or four at once, with a sign for each weight.

A codebook is an array of numbers, uint64 or uint32, whose bytes are the magnitudes of a point.
"""

# mypy: disable-error-code="no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from ..codecs import codebooks
from ..types import GGMLType
from . import DECODE, FORMS, Form
from .bits import half_at, word_at
from .unpacked import put
from .vectors import condition, in_lanes, inner, negative, to_floats, unsigned, where

f32, i64 = np.float32, np.int64
_SEVEN = np.arange(128)
SIGNS = (_SEVEN | (np.bitwise_count(_SEVEN) & 1) << 7).astype(
    np.uint8
)  # of seven; the eighth makes them an even number


@inner
def eights(points: Any, first: Any, second: Any) -> Any:
    """The magnitudes of two points of eight."""
    return unsigned(in_lanes((points[first], points[second])))


@inner
def fours(points: Any, block: Any, at: Any, above: Any) -> Any:
    """Those of four points of four: their numbers are bytes of a block, and bits of ``above`` over those."""
    a, b = i64(block[at]) | (above & 1) << 8, i64(block[at + 1]) | (above >> 1 & 1) << 8
    c, d = i64(block[at + 2]) | (above >> 2 & 1) << 8, i64(block[at + 3]) | (above >> 3 & 1) << 8
    return unsigned(in_lanes((points[a], points[b], points[c], points[d])))


@inner
def signed_by(bits: Any, sizes: Any, scale: Any) -> Any:
    """scale × magnitude, with a minus where a bit is set."""
    weights = to_floats(sizes) * scale
    return where(condition(bits), negative(weights), weights)


@inner
def signs_of(sevens: Any, signs: Any) -> Any:
    """Sixteen signs of two times seven."""
    return i64(signs[sevens & 127]) | i64(signs[sevens >> 7 & 127]) << 8


@inner
def two_at(block: Any, at: Any) -> Any:
    """Two bytes of a block as a number."""
    return i64(block[at]) | i64(block[at + 1]) << 8


def decode_iq2_xxs(raw: Any, out: Any, past: bool, points: Any, signs: Any) -> None:
    """raw: (blocks, 66) uint8   ->   out: (blocks, 256) float32."""
    block, weights = raw.reshape(-1), out.reshape(-1)
    for b in range(len(raw)):
        d = half_at(block, 66 * b)
        for sub in range(8):
            at, place = 66 * b + 2 + 8 * sub, 256 * b + 32 * sub
            packed = word_at(block, at + 4)
            scale = d * (f32(0.5) + f32(packed >> 28)) * f32(0.25)
            for part in range(2):
                sizes = eights(points, block[at + 2 * part], block[at + 2 * part + 1])
                bits = signs_of(packed >> 14 * part, signs)
                put(weights, place + 16 * part, signed_by(bits, sizes, scale), past)


def decode_iq2_xs(raw: Any, out: Any, past: bool, points: Any, signs: Any) -> None:
    """raw: (blocks, 74) uint8   ->   out: (blocks, 256) float32."""
    block, weights = raw.reshape(-1), out.reshape(-1)
    for b in range(len(raw)):
        d = half_at(block, 74 * b)
        for sub in range(16):
            q = word_at(block, 74 * b + 2 + 4 * sub)
            four = i64(block[74 * b + 66 + sub // 2]) >> 4 * (sub % 2) & 15
            scale = d * (f32(0.5) + f32(four)) * f32(0.25)
            bits = signs_of(q >> 9 & 127 | q >> 25 << 7, signs)
            sizes = eights(points, q & 511, q >> 16 & 511)
            put(weights, 256 * b + 16 * sub, signed_by(bits, sizes, scale), past)


def decode_iq2_s(raw: Any, out: Any, past: bool, points: Any) -> None:
    """raw: (blocks, 82) uint8   ->   out: (blocks, 256) float32."""
    block, weights = raw.reshape(-1), out.reshape(-1)
    for b in range(len(raw)):
        d = half_at(block, 82 * b)
        for sub in range(16):
            at = 82 * b + 2 + 2 * sub
            above = i64(block[82 * b + 66 + sub // 2]) >> 4 * (sub % 2)
            four = i64(block[82 * b + 74 + sub // 2]) >> 4 * (sub % 2) & 15
            first, second = i64(block[at]) | (above & 3) << 8, i64(block[at + 1]) | (above >> 2 & 3) << 8
            scale = d * (f32(0.5) + f32(four)) * f32(0.25)
            found = signed_by(two_at(block, at + 32), eights(points, first, second), scale)
            put(weights, 256 * b + 16 * sub, found, past)


def decode_iq3_xxs(raw: Any, out: Any, past: bool, points: Any, signs: Any) -> None:
    """raw: (blocks, 98) uint8   ->   out: (blocks, 256) float32."""
    block, weights = raw.reshape(-1), out.reshape(-1)
    for b in range(len(raw)):
        d = half_at(block, 98 * b)
        for sub in range(8):
            at, place = 98 * b + 2 + 8 * sub, 256 * b + 32 * sub
            packed = word_at(block, 98 * b + 66 + 4 * sub)
            scale = d * (f32(0.5) + f32(packed >> 28)) * f32(0.5)
            for part in range(2):
                sizes, bits = fours(points, block, at + 4 * part, 0), signs_of(packed >> 14 * part, signs)
                put(weights, place + 16 * part, signed_by(bits, sizes, scale), past)


def decode_iq3_s(raw: Any, out: Any, past: bool, points: Any) -> None:
    """raw: (blocks, 110) uint8   ->   out: (blocks, 256) float32."""
    block, weights = raw.reshape(-1), out.reshape(-1)
    for b in range(len(raw)):
        d = half_at(block, 110 * b)
        for sub in range(16):
            at = 110 * b + 2 + 4 * sub
            four = i64(block[110 * b + 106 + sub // 4]) >> 4 * (sub // 2 % 2) & 15
            scale = d * (f32(1) + f32(2) * f32(four))
            sizes = fours(points, block, at, i64(block[110 * b + 66 + sub // 2]) >> 4 * (sub % 2))
            bits = two_at(block, 110 * b + 74 + 2 * sub)
            put(weights, 256 * b + 16 * sub, signed_by(bits, sizes, scale), past)


def _words(points: np.ndarray) -> np.ndarray:
    """A codebook, (points, 8 or 4) float32, as numbers of as many bytes."""
    return points.astype(np.uint8).view("<u8" if points.shape[1] == 8 else "<u4")[:, 0]


FORMS[GGMLType.IQ2_XXS, DECODE] = Form(decode_iq2_xxs, (_words(codebooks.IQ2_XXS), SIGNS))
FORMS[GGMLType.IQ2_XS, DECODE] = Form(decode_iq2_xs, (_words(codebooks.IQ2_XS), SIGNS))
FORMS[GGMLType.IQ2_S, DECODE] = Form(decode_iq2_s, (_words(codebooks.IQ2_S),))
FORMS[GGMLType.IQ3_XXS, DECODE] = Form(decode_iq3_xxs, (_words(codebooks.IQ3_XXS), SIGNS))
FORMS[GGMLType.IQ3_S, DECODE] = Form(decode_iq3_s, (_words(codebooks.IQ3_S),))
