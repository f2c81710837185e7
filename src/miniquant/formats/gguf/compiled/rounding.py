"""Encoding of the types of small blocks: sixteen blocks at once, each in a lane of its own, and floats one by one."""

# mypy: disable-error-code="no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from ..codecs.iq4_nl import LEVELS
from ..codecs.search import finer_steps
from ..types import GGMLType
from . import ENCODE, ENCODE_WEIGHTED, FORMS, Form
from .bits import put_half
from .k_quants import columns_of, transposed, weigh
from .searches import (
    ONE,
    SCALE,
    SMALLEST,
    ZERO,
    ZEROS,
    at_least,
    at_most,
    integers_around_zero,
    integers_with_min,
    largest,
    scale_alone,
    scale_and_min,
)
from .vectors import (
    N,
    anywhere,
    bytes_of,
    every,
    halves,
    has_halves,
    inner,
    load,
    magnitude,
    negative,
    read,
    rint,
    root,
    store,
    to_ints,
    where,
    write,
)

f32, i32, u8, u32 = np.float32, np.int32, np.uint8, np.uint32
Q4_0, Q4_1, Q5_0, Q5_1 = 2, 3, 6, 7  # ggml's numbers
TRIES = 15  # of IQ4_NL


@inner
def _inverse(d: Any) -> Any:
    return where(d == ZERO, every(ZERO), every(ONE) / d)


@inner
def _round(x: Any, low: Any, d: Any, shift: Any, top: Any, q: Any) -> None:
    """``round_to_levels`` of x - low.   x: a tile -> q: (n, 16) int32."""
    inverted, endless = _inverse(d), f32(np.inf)
    fine = (magnitude(inverted) < endless) & (magnitude(d) < endless)
    for i in range(len(x)):
        v = (load(x, i) - low) * inverted + shift
        store(q, i, to_ints(at_most(where(fine, v, every(ZERO)), top)))


@inner
def put_nibbles(q: Any, lane: Any, five: Any, out: Any) -> None:
    """Fifth bits where there are some, then nibbles.   q: (32, 16) int32 -> out: (16 or 20,) uint8."""
    at = 0
    if five:
        at = 4
        for j in range(4):
            bits = i32(0)
            for i in range(8):
                bits |= (q[8 * j + i, lane] >> 4 & 1) << i
            out[j] = u8(bits)
    for i in range(16):
        out[at + i] = u8(q[i, lane] & 15 | (q[i + 16, lane] & 15) << 4)


@inner
def _spreads(w: Any, blocks: Any) -> Any:
    """The mean square of every row, added up in ggml's order.   w: (blocks of all rows, 32)   ->   (rows,)."""
    found = np.empty(len(w) // blocks, f32)
    for row in range(len(found)):
        total = ZERO
        for b in range(row * blocks, (row + 1) * blocks):
            for i in range(w.shape[1]):
                total += w[b, i] * w[b, i]
        found[row] = total / f32(blocks * w.shape[1])
    return found


def encode_nibbles(w: Any, importance: Any, out: Any, kind: int, attempts: Any) -> None:
    """Q4_0, Q4_1, Q5_0, Q5_1.   w: (blocks, 32), importance: (blocks of a row, 32) or (0, 32) -> out: (blocks, bytes).

    attempts: of the search for scale and min
    """
    five, mins, weighs = kind in (Q5_0, Q5_1), kind in (Q4_1, Q5_1), len(importance) > 0
    top = f32(31 if five else 15)
    half = f32(16 if five else 8)
    x, counts, k = np.empty((32, N), f32), np.empty((32, N), f32), np.empty((32, N), f32)
    q, found, rows = np.empty((32, N), i32), np.empty((4, N), f32), np.empty((1, N), f32)
    head = np.empty((2, 1, N), f32)
    spreads = _spreads(w, len(importance)) if weighs else np.empty(0, f32)
    for first in range(0, len(w), N):
        transposed(w, first, x)
        if weighs:
            columns_of(importance, first, len(w), counts)
            for lane in range(N):
                rows[0, lane] = spreads[min(first + lane, len(w) - 1) // len(importance)]
            spread = load(rows, 0)
            for i in range(32):
                v = load(x, i)
                store(counts, i, load(counts, i) * root(spread + v * v))
        if weighs and mins:
            scale_and_min(x, counts, top, attempts, False, True, found, k)
            store(head[0], 0, load(found, SCALE))
            store(head[1], 0, negative(load(found, ZEROS)))
            for i in range(32):
                store(q, i, to_ints(integers_with_min(x, i, found, top, True)))
        elif weighs:
            scale_alone(x, counts, half, found)
            store(head[0], 0, load(found, SCALE))
            for i in range(32):
                v = at_least(at_most(integers_around_zero(x, i, found, half), half - ONE), -half)
                store(q, i, to_ints(v + half))
        elif mins:
            low = high = load(x, 0)
            for i in range(1, 32):
                v = load(x, i)
                low, high = where(low < v, low, v), where(high > v, high, v)  # of two zeros the last, as in numpy
            d = (high - low) / top
            store(head[0], 0, d)
            store(head[1], 0, low)
            _round(x, low, d, f32(0.5), top, q)
        else:
            d = largest(x) / -half
            store(head[0], 0, d)
            _round(x, every(ZERO), d, half + f32(0.5), top, q)
        for lane in range(min(N, len(w) - first)):
            block = out[first + lane]
            put_half(block, 0, head[0, 0, lane])
            if mins:
                put_half(block, 2, head[1, 0, lane])
                put_nibbles(q, lane, five, block[4:])
            else:
                put_nibbles(q, lane, five, block[2:])


def encode_q4_1(w: Any, out: Any) -> None:
    """w: (blocks, 32) float32   ->   out: (blocks, 20) uint8. Along the block, which takes a third of the time."""
    ends, top, endless = np.empty((2, N), f32), f32(15), f32(np.inf)
    for b in range(len(w)):
        block, found = w[b], out[b]
        first, second = read(block, 0), read(block, N)
        store(ends, 0, where(first < second, first, second))
        store(ends, 1, where(first > second, first, second))
        low, high = ends[0, 0], ends[1, 0]
        for lane in range(1, N):
            low, high = min(low, ends[0, lane]), max(high, ends[1, lane])
        if low == ZERO:
            for v in block:
                low = v if v == ZERO else low  # of two zeros the last, as in numpy
        d = ZERO if high == low else (high - low) / top
        inverted = ZERO if d == ZERO else ONE / d
        put_half(found, 0, d)
        put_half(found, 2, low)
        if not (d < endless and inverted < endless):
            first = second = every(ZERO)
            low = inverted = ZERO
        q = to_ints(at_most((first - low) * inverted + f32(0.5), top))
        q = q | to_ints(at_most((second - low) * inverted + f32(0.5), top)) << 4
        write(found, 4, bytes_of(q))


@inner
def nearest_level(v: Any, levels: Any) -> Any:
    """The index of the nearest of sixteen levels, of two the upper one."""
    found = every(ZERO)
    for i in range(1, 16):
        found = where(v < (levels[i - 1] + levels[i]) / f32(2), found, every(f32(i)))
    return found


@inner
def _level(v: Any, levels: Any) -> Any:
    found = every(levels[0])
    for i in range(1, 16):
        found = where(v < (levels[i - 1] + levels[i]) / f32(2), found, every(levels[i]))
    return found


@inner
def _search_levels(x: Any, counts: Any, levels: Any) -> Any:
    """``search_levels``: the scale.   x, counts: tiles."""
    extreme = largest(x)
    scale = best = every(ZERO)
    for attempt in range(TRIES + 1):
        if attempt == 0:
            inverted = every(ONE) / (negative(extreme) / levels[0])
        else:
            inverted = every(f32(attempt - 8) + levels[0]) / extreme
        sum_qx, sum_qq = every(ZERO), every(ZERO)
        for i in range(len(x)):
            v = load(x, i)
            k = _level(v * inverted, levels)
            counted = load(counts, i) * k
            sum_qx, sum_qq = sum_qx + counted * v, sum_qq + counted * k
        fitted = sum_qx / sum_qq
        if attempt == 0:
            scale = where(sum_qq == ZERO, every(ZERO), fitted)
            best = scale * sum_qx
        else:
            better = (sum_qq > ZERO) & (sum_qx * sum_qx > best * sum_qq)
            scale = where(better, fitted, scale)
            best = where(better, scale * sum_qx, best)
    return where(magnitude(extreme) < SMALLEST, every(ZERO), scale)


def encode_iq4(w: Any, importance: Any, out: Any, levels: Any) -> None:
    """IQ4_NL and IQ4_XS.   w: (blocks, 32 or 256), importance: (blocks of a row, as many) or (0, …) -> out."""
    n, weighs = w.shape[1], len(importance) > 0
    subs = n // 32
    x, counts, q = np.empty((n, N), f32), np.empty((n, N), f32), np.empty((n, N), i32)
    scales, head, whole = np.empty((subs, N), f32), np.empty((1, N), f32), np.empty((subs, N), f32)
    for first in range(0, len(w), N):
        transposed(w, first, x)
        if weighs:
            columns_of(importance, first, len(w), counts)
            weigh(x, counts, f32(2))
        else:
            for i in range(n):
                v = load(x, i)
                store(counts, i, v * v)
        for t in range(subs):
            store(scales, t, _search_levels(x[32 * t : 32 * t + 32], counts[32 * t : 32 * t + 32], levels))
        d = largest(scales)
        if subs == 8:
            d = d / f32(-32)
        store(head, 0, d)
        inverted = _inverse(d)
        for t in range(subs):
            step = d
            if subs == 8:
                k = at_least(at_most(rint(inverted * load(scales, t)), f32(31)), f32(-32))
                store(whole, t, k)
                step = d * k
            step = _inverse(step)
            for i in range(32):
                store(q, 32 * t + i, to_ints(nearest_level(load(x, 32 * t + i) * step, levels)))
        for lane in range(min(N, len(w) - first)):
            block = out[first + lane]
            put_half(block, 0, head[0, lane])
            if subs == 1:
                put_nibbles(q, lane, False, block[2:])
                continue
            high = i32(0)
            for t in range(8):
                bits = i32(whole[t, lane]) + 32
                high |= (bits >> 4) << 2 * t
                block[4 + t // 2] = u8(bits & 15) if t % 2 == 0 else u8(block[4 + t // 2] | (bits & 15) << 4)
                put_nibbles(q[32 * t : 32 * t + 32], lane, False, block[8 + 16 * t :])
            block[2], block[3] = u8(high & 255), u8(high >> 8)


def encode_q8_0(w: Any, out: Any) -> None:
    """w: (blocks, 32) float32   ->   out: (blocks, 34) uint8."""
    bits = w.view(u32)
    almost_half = u32(0x3EFFFFFF)
    for b in range(len(w)):
        row, x, q, most = bits[b], w[b], out[b, 2:], u32(0)
        for i in range(len(row)):
            most = max(most, u32(row[i] & u32(0x7FFFFFFF)))
        d = u32(most).view(f32) / f32(127)
        inverse = ZERO if d == ZERO else ONE / d
        endless = inverse == f32(np.inf)
        for i in range(len(q)):
            v = ZERO if endless else x[i] * inverse
            half = u32(f32(v).view(u32) & u32(0x80000000) | almost_half).view(f32)
            q[i] = u8(i32(v + half))
        put_half(out[b], 0, d)


def encode_f16(w: Any, out: Any) -> None:
    """w: (n, 1) float32   ->   out: (n, 2) uint8. In registers where the processor rounds, except for NaNs."""
    x, found, first = w.reshape(-1), out.reshape(-1).view(np.uint16), 0
    if has_halves():
        for first in range(0, len(found) - N + 1, N):
            weights = read(x, first)
            if anywhere(weights != weights):
                _f16(x[first : first + N].view(u32), found[first : first + N])
            else:
                write(found, first, halves(weights))
        first = len(found) // N * N
    _f16(x[first:].view(u32), found[first:])


@inner
def _f16(bits: Any, found: Any) -> None:
    """Without a branch, so that it becomes vectors."""
    for i in range(len(found)):
        b = bits[i]
        size = u32(b & u32(0x7FFFFFFF))
        small = u32(f32(size.view(f32) + f32(0.5)).view(u32) - u32(0x3F000000))
        plain = u32(u32(size + u32(0xFFF) + (size >> u32(13) & u32(1)) - u32(112 << 23)) >> u32(13))
        left = u32(size >> u32(13) & u32(0x3FF))  # of a NaN: its bits stay, as numpy keeps them
        large = u32(0x7C00) if size <= u32(0x7F800000) else u32(u32(0x7C00) | left | u32(left == 0))
        chosen = small if size < u32(0x38800000) else large if size >= u32(0x477FF000) else plain
        found[i] = np.uint16(u32(chosen | b >> u32(16) & u32(0x8000)))


def encode_bf16(w: Any, out: Any) -> None:
    """w: (n, 1) float32   ->   out: (n, 2) uint8."""
    bits, found = w.reshape(-1).view(u32), out.reshape(-1).view(np.uint16)
    for i in range(len(found)):
        b = bits[i]
        plain = u32(u32(b + u32(0x7FFF) + (b >> u32(16) & u32(1))) >> u32(16))
        nan = u32(b >> u32(16) | u32(64))
        found[i] = np.uint16(nan if u32(b & u32(0x7FFFFFFF)) > u32(0x7F800000) else plain)


for _kind in (Q4_0, Q4_1, Q5_0, Q5_1):
    for _what in (ENCODE, ENCODE_WEIGHTED):
        _steps = finer_steps(15 if _kind in (Q4_0, Q4_1) else 31)
        FORMS[GGMLType(_kind), _what] = Form(encode_nibbles, (_kind, _steps), importance=True)
FORMS[GGMLType.Q4_1, ENCODE] = Form(encode_q4_1)
for _name in ("IQ4_NL", "IQ4_XS"):
    for _what in (ENCODE, ENCODE_WEIGHTED):
        FORMS[GGMLType[_name], _what] = Form(encode_iq4, (LEVELS,), importance=True)
FORMS[GGMLType.Q8_0, ENCODE] = Form(encode_q8_0)
FORMS[GGMLType.F16, ENCODE] = Form(encode_f16)
FORMS[GGMLType.BF16, ENCODE] = Form(encode_bf16)
