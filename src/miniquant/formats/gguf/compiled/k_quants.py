"""K-quants encoded: ``codecs.kquant``, sixteen super-blocks at once, each in a lane of its own.

So every sum, of a sub-block or over the scales of a super-block, goes down the rows of a tile.
"""

# mypy: disable-error-code="no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from ..codecs.search import finer_steps, steps
from ..types import GGMLType
from . import ENCODE, ENCODE_WEIGHTED, FORMS, Form
from .bits import from_half, put_half, put_runs, to_half
from .searches import (
    ONE,
    SCALE,
    SMALLEST,
    ZERO,
    ZEROS,
    at_least,
    at_most,
    highest,
    integers_around_zero,
    integers_with_min,
    largest,
    nearest,
    positive_scale,
    scale_alone,
    scale_and_min,
    scale_of_3_bits,
)
from .vectors import N, every, inner, load, magnitude, rint, root, store, to_ints, where

f32, i32, u8 = np.float32, np.int32, np.uint8
Q2_K, Q3_K, Q4_K, Q5_K, Q6_K = 10, 11, 12, 13, 14  # ggml's numbers
WEIGHTS = 256


@inner
def transposed(w: Any, first: Any, x: Any) -> None:
    """Sixteen blocks from ``first`` on, the last one again where there are fewer.   w: (blocks, n) -> x: (n, 16)."""
    for lane in range(N):
        block = w[min(first + lane, len(w) - 1)]
        for i in range(len(block)):
            x[i, lane] = block[i]


@inner
def columns_of(importance: Any, first: Any, blocks: Any, counts: Any) -> None:
    """The importance of the columns of those blocks.   importance: (blocks of a row, n)   ->   counts: (n, 16)."""
    for lane in range(N):
        row = importance[min(first + lane, blocks - 1) % len(importance)]
        for i in range(len(row)):
            counts[i, lane] = row[i]


@inner
def weigh(x: Any, counts: Any, factor: Any) -> None:
    """``error_weights``, in place: each count times the root of (``factor`` × the mean square + the square)."""
    total = every(ZERO)
    for i in range(len(x)):
        v = load(x, i)
        total = total + v * v
    spread = total / f32(len(x)) * factor
    for i in range(len(x)):
        v = load(x, i)
        store(counts, i, load(counts, i) * root(spread + v * v))


@inner
def halves(d: Any) -> None:
    """A row of lanes as float16 would keep it, in place."""
    for lane in range(N):
        d[0, lane] = from_half(to_half(d[0, lane]))


@inner
def _what_counts(kind: Any, x: Any, weighs: Any, counts: Any, together: Any, t: Any) -> None:
    """What counts in sub-block t: without an importance, its own; with one, all of it together is what it counts."""
    if weighs:
        total = every(ZERO)
        for i in range(len(counts)):
            total = total + load(counts, i)
        store(together, t, total)
    else:
        _own_counts(kind, x, counts)


@inner
def _own_counts(kind: Any, x: Any, counts: Any) -> None:
    """What counts in a sub-block where no importance is given."""
    spread = every(ZERO)
    if kind in (Q4_K, Q5_K):
        for i in range(len(x)):
            v = load(x, i)
            spread = spread + v * v
        spread = root(spread / f32(len(x)))
    for i in range(len(x)):
        v = load(x, i)
        if kind in (Q3_K, Q6_K):
            store(counts, i, v * v)
        elif kind == Q2_K:
            store(counts, i, magnitude(v))
        else:
            store(counts, i, spread + magnitude(v))


@inner
def _unsigned(numbers: Any, top: Any, q: Any) -> Any:
    """``unsigned_integers``: what 1 is worth.   numbers, q: tiles."""
    high = highest(numbers)
    inverse = every(top) / high
    inverse = where(magnitude(inverse) < f32(np.inf), inverse, every(ZERO))
    for t in range(len(numbers)):
        store(q, t, at_most(at_least(rint(inverse * load(numbers, t)), ZERO), top))
    return high / top


@inner
def _signed(numbers: Any, bottom: Any, q: Any) -> Any:
    """``signed_integers``: what 1 is worth.   numbers, q: tiles."""
    extreme = largest(numbers)
    nothing = extreme == ZERO
    inverse = where(nothing, every(ZERO), every(bottom) / extreme)
    for t in range(len(numbers)):
        store(q, t, at_most(at_least(rint(inverse * load(numbers, t)), bottom), -bottom - ONE))
    return where(nothing, every(ZERO), every(ONE) / inverse)


@inner
def _scatter(numbers: Any, bytes_: Any, first: Any) -> None:
    """Rows of lanes into the bytes of sixteen blocks.   numbers: (n, 16) int32 -> bytes_[:, first:]: (16, …)."""
    for i in range(len(numbers)):
        for lane in range(N):
            bytes_[lane, first + i] = u8(numbers[i, lane])


@inner
def _pack_in_file(kind: Any, scales: Any, mins: Any) -> None:
    """What the file keeps of scales and mins of eight bits, in place.   (16, sub-blocks) uint8."""
    for lane in range(N):
        s, m = scales[lane], mins[lane]
        if kind == Q2_K:
            for t in range(len(s)):
                m[t] = (m[t] | s[t] >> u8(4)) & u8(15)
                s[t] &= u8(15)
        elif kind == Q5_K:
            for t in range(len(s)):
                s[t], m[t] = min(s[t], u8(63)), min(m[t], u8(63))
        else:
            for t in range(4):
                s[t + 4] = s[t + 4] & u8(15) | (s[t] >> u8(6) | s[t + 4] >> u8(4) & u8(3)) << u8(4)
                m[t + 4] = m[t + 4] & u8(15) | (m[t] >> u8(6) | m[t + 4] >> u8(4) & u8(3)) << u8(4)
                s[t], m[t] = s[t] & u8(63), m[t] & u8(63)


@inner
def _six_bits(s: Any, m: Any, out: Any) -> None:
    """As ``packing.pack_scales_and_mins``.   s, m: (8,) uint8   ->   out: (12,)."""
    for j in range(4):
        out[j] = s[j] | s[j + 4] >> u8(4) << u8(6)
        out[j + 4] = m[j] | m[j + 4] >> u8(4) << u8(6)
        out[j + 8] = s[j + 4] & u8(15) | m[j + 4] << u8(4)


def encode_with_mins(w: Any, importance: Any, out: Any, kind: int, factors: Any) -> None:
    """Q2_K, Q4_K, Q5_K.   w: (blocks, 256), importance: (blocks of a row, 256) or (0, 256) -> out: (blocks, bytes).

    factors: the attempts of the search, ``codecs.search.steps`` or ``finer_steps``
    """
    size = 16 if kind == Q2_K else 32
    top = f32(3 if kind == Q2_K else 15 if kind == Q4_K else 31)
    scale_top, subs, weighs = f32(15 if kind == Q2_K else 63), WEIGHTS // size, len(importance) > 0
    x, counts = np.empty((WEIGHTS, N), f32), np.empty((WEIGHTS, N), f32)
    found, q, whole = np.empty((subs, 4, N), f32), np.empty((size, N), f32), np.empty((size, N), i32)
    numbers, integers, together = np.empty((2, subs, N), f32), np.empty((2, subs, N), f32), np.empty((subs, N), f32)
    fields, levels, worth = np.empty((2, N, subs), u8), np.empty((N, WEIGHTS), u8), np.empty((2, 1, N), f32)
    exact = np.empty((2, 1, N), f32)
    for first in range(0, len(w), N):
        transposed(w, first, x)
        if weighs:
            columns_of(importance, first, len(w), counts)
            weigh(x, counts, ONE if kind == Q2_K else f32(2))
        for t in range(subs):
            tile, counted = x[t * size : (t + 1) * size], counts[t * size : (t + 1) * size]
            _what_counts(kind, tile, weighs, counted, together, t)
            scale_and_min(tile, counted, top, factors, kind == Q2_K and not weighs, weighs, found[t], q)
            store(numbers[0], t, load(found[t], SCALE))
            store(numbers[1], t, load(found[t], ZEROS))
        for part in range(2):
            if weighs:
                d = positive_scale(numbers[part], together, scale_top, integers[part])
            else:
                d = _unsigned(numbers[part], scale_top, integers[part])
            store(worth[part], 0, d)
            store(exact[part], 0, d)
            halves(worth[part])
            for t in range(subs):
                for lane in range(N):
                    fields[part, lane, t] = u8(integers[part, t, lane])
        if weighs:
            _pack_in_file(kind, fields[0], fields[1])
            for part in range(2):
                for t in range(subs):
                    for lane in range(N):
                        integers[part, t, lane] = f32(fields[part, lane, t])
        for t in range(subs):
            tile = x[t * size : (t + 1) * size]
            step = load(worth[0], 0) * load(integers[0], t)
            offset = load(worth[1], 0) * load(integers[1], t)
            lost = step == ZERO
            for i in range(size):
                k = nearest((load(tile, i) + offset) / step)
                k = where(lost, integers_with_min(tile, i, found[t], top, weighs), k)
                store(whole, i, to_ints(at_least(at_most(k, top), ZERO)))
            _scatter(whole, levels, t * size)
        for lane in range(min(N, len(w) - first)):
            block, s, m, q_of = out[first + lane], fields[0, lane], fields[1, lane], levels[lane]
            d, dmin = exact[0, 0, lane], exact[1, 0, lane]
            if kind == Q2_K:
                for t in range(subs):
                    block[t] = s[t] | m[t] << u8(4)
                put_runs(q_of, 0, 2, 32, block[16:80])
                put_half(block, 80, d)
                put_half(block, 82, dmin)
            else:
                put_half(block, 0, d)
                put_half(block, 2, dmin)
                _six_bits(s, m, block[4:16])
                if kind == Q5_K:
                    put_runs(q_of, 4, 1, 32, block[16:48])
                put_runs(q_of, 0, 4, 32, block[48:] if kind == Q5_K else block[16:])


def encode_around_zero(w: Any, importance: Any, out: Any, kind: int) -> None:
    """Q3_K and Q6_K.   w: (blocks, 256), importance: (blocks of a row, 256) or (0, 256) -> out: (blocks, bytes)."""
    size, subs, weighs = 16, WEIGHTS // 16, len(importance) > 0
    top, bottom = f32(4 if kind == Q3_K else 32), f32(-32 if kind == Q3_K else -128)
    x, counts = np.empty((WEIGHTS, N), f32), np.empty((WEIGHTS, N), f32)
    found, q, whole = np.empty((subs, 4, N), f32), np.empty((WEIGHTS, N), f32), np.empty((size, N), i32)
    numbers, integers, together = np.empty((subs, N), f32), np.empty((subs, N), f32), np.empty((subs, N), f32)
    outer, levels = np.empty((4, N), f32), np.empty((N, WEIGHTS), u8)
    worth, exact = np.empty((1, N), f32), np.empty((1, N), f32)
    searched = kind == Q3_K and not weighs
    for first in range(0, len(w), N):
        transposed(w, first, x)
        if weighs:
            columns_of(importance, first, len(w), counts)
            if kind == Q3_K:
                weigh(x, counts, f32(2))
        for t in range(subs):
            tile, counted = x[t * size : (t + 1) * size], counts[t * size : (t + 1) * size]
            _what_counts(kind, tile, weighs, counted, together, t)
            if searched:
                scale_of_3_bits(tile, counted, found[t], q[t * size : (t + 1) * size])
            else:
                scale_alone(tile, counted, top, found[t])
            store(numbers, t, load(found[t], SCALE))
        if weighs and kind == Q3_K:
            scale_alone(numbers, together, -bottom, outer)
            d = load(outer, SCALE)
            for t in range(subs):
                k = integers_around_zero(numbers, t, outer, -bottom)
                store(integers, t, at_least(at_most(k, -bottom - ONE), bottom))
        else:
            d = _signed(numbers, bottom, integers)
        store(worth, 0, d)
        store(exact, 0, d)
        halves(worth)
        for t in range(subs):
            tile = x[t * size : (t + 1) * size]
            step = load(worth, 0) * load(integers, t)
            lost = step == ZERO
            for i in range(size):
                k = nearest(load(tile, i) / step)
                if searched:
                    left = where(load(found[t], ZEROS) > ZERO, every(-top), load(q, t * size + i))
                else:
                    left = integers_around_zero(tile, i, found[t], top)
                k = at_least(at_most(where(lost, left, k), top - ONE), -top)
                store(whole, i, to_ints(k + top))
            _scatter(whole, levels, t * size)
        for lane in range(min(N, len(w) - first)):
            block, q_of, d_of = out[first + lane], levels[lane], exact[0, lane]
            if kind == Q3_K:
                put_runs(q_of, 2, 1, 32, block[:32])
                put_runs(q_of, 0, 2, 32, block[32:96])
                for j in range(8):
                    low, high = u8(integers[j, lane] + f32(32)), u8(integers[j + 8, lane] + f32(32))
                    block[96 + j] = low & u8(15) | high << u8(4)
                for j in range(4):
                    bits = u8(0)
                    for part in range(4):
                        bits |= u8(integers[j + 4 * part, lane] + f32(32)) >> u8(4) << u8(2 * part)
                    block[104 + j] = bits
                if d_of == ZERO and not weighs:
                    block[96:108] = 0
                put_half(block, 108, d_of)
            else:
                put_runs(q_of, 0, 4, 64, block[:128])
                put_runs(q_of, 4, 2, 32, block[128:192])
                for t in range(subs):
                    block[192 + t] = u8(i32(integers[t, lane]) & i32(255))
                put_half(block, 208, d_of)
                empty = True
                for t in range(subs):
                    empty = empty and abs(numbers[t, lane]) < SMALLEST
                if empty:
                    block[:] = 0


def _register() -> None:
    tops = {GGMLType.Q2_K: (3, -0.5, 15), GGMLType.Q4_K: (15, -1.0, 20), GGMLType.Q5_K: (31, -0.5, 15)}
    for dtype, (top, start, count) in tops.items():
        for what, attempts in ((ENCODE, steps(top, start, count)), (ENCODE_WEIGHTED, finer_steps(top))):
            FORMS[dtype, what] = Form(encode_with_mins, (int(dtype), attempts), importance=True)
    for dtype in (GGMLType.Q3_K, GGMLType.Q6_K):
        for what in (ENCODE, ENCODE_WEIGHTED):
            FORMS[dtype, what] = Form(encode_around_zero, (int(dtype),), importance=True)


_register()
