"""The searches for scales, compiled: ``codecs.search``, sixteen sub-blocks at once, each in a lane of its own.

The tests compare the two, bit for bit. Formulas, names and sources stand there; here is the same in another order:
what numpy does with one array after another happens here for one row of lanes after another. A tile is an array of
float32, (weights, 16); row i holds weight i of sixteen sub-blocks.
"""

# mypy: disable-error-code="no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from .vectors import anywhere, bits_of, every, inner, load, magnitude, negative, rint, store, to_floats, where

f32, i32 = np.float32, np.int32
SMALLEST = f32(1e-15)
_SHIFT = f32(3 * 2**22)
ZERO, ONE = f32(0), f32(1)
SCALE, LOW, INVERSE, ZEROS = 0, 1, 2, 3  # the rows of what a search has found


@inner
def nearest(v: Any) -> Any:
    """As ``codecs.search.nearest``, large numbers and NaN included."""
    return to_floats((bits_of(v + _SHIFT) & i32(2**23 - 1)) - i32(2**22))


@inner
def at_least(v: Any, bottom: Any) -> Any:
    """The larger one; the bottom for a NaN."""
    low = every(bottom)
    return where(v > low, v, low)


@inner
def at_most(v: Any, top: Any) -> Any:
    """The smaller one; the top for a NaN."""
    high = every(top)
    return where(v < high, v, high)


@inner
def between(v: Any, bottom: Any, top: Any) -> Any:
    """Cut to ``bottom`` … ``top``; a NaN stays one."""
    low, high = every(bottom), every(top)
    v = where(v < low, low, v)
    return where(v > high, high, v)


@inner
def eight_bits(v: Any) -> Any:
    """What is left of an integer in eight bits without a sign; ``v`` is one of ``nearest``."""
    return to_floats(bits_of(v + _SHIFT) & i32(255))


@inner
def largest(x: Any) -> Any:
    """The weight of largest magnitude in each lane, with its sign; the first of two, or the first NaN."""
    found = load(x, 0)
    for i in range(1, len(x)):
        v = load(x, i)
        found = where((magnitude(v) > magnitude(found)) | (v != v) & (found == found), v, found)
    return found


@inner
def highest(x: Any) -> Any:
    """The largest number in each lane, at least 0; NaN if one is NaN."""
    found = every(ZERO)
    for i in range(len(x)):
        v = load(x, i)
        found = where((v > found) | (v != v), v, found)
    return found


@inner
def _integers(v: Any, top: Any, cut_first: Any) -> Any:
    if cut_first:
        return rint(at_most(at_least(v, ZERO), top))
    return at_most(at_least(nearest(v), ZERO), top)


@inner
def scale_and_min(
    x: Any, counts: Any, top: Any, factors: Any, absolute: Any, cut_first: Any, found: Any, q: Any
) -> None:
    """``search_scale_and_min``.   x, counts: tiles -> found: rows ``SCALE`` … ``ZEROS``, (4, 16); q: overwritten."""
    first = last = load(x, 0)
    total, total_x = every(ZERO), every(-ZERO)
    for i in range(len(x)):
        v, c = load(x, i), load(counts, i)
        odd = (v != v) & (first == first)
        first, last = where((v < first) | odd, v, first), where((v > last) | odd, v, last)
        total, total_x = total + c, total_x + c * v
    low, high = where(first > ZERO, every(ZERO), first), last
    flat = high == low
    inverse = every(top) / (high - low)
    scale = every(ONE) / inverse
    inverse = where(magnitude(inverse) < f32(np.inf), inverse, every(ZERO))
    best = every(ZERO)
    for i in range(len(x)):
        v = load(x, i)
        t = _integers((v - low) * inverse, top, cut_first) * scale + low - v
        t = magnitude(t) if absolute else t * t
        best = best + t * load(counts, i)
    best_low, best_inverse = low, inverse
    for factor in factors:
        inverse = every(factor) / (high - low)
        sum_q, sum_qq, sum_qx = every(ZERO), every(ZERO), every(ZERO)
        for i in range(len(x)):
            v = load(x, i)
            k = _integers((v - low) * inverse, top, cut_first)
            store(q, i, k)
            counted = load(counts, i) * k
            sum_q, sum_qq, sum_qx = sum_q + counted, sum_qq + counted * k, sum_qx + counted * v
        determinant = total * sum_qq - sum_q * sum_q
        fitted = (total * sum_qx - total_x * sum_q) / determinant
        offset = (sum_qq * total_x - sum_q * sum_qx) / determinant
        above = offset > ZERO
        fitted = where(above, sum_qx / sum_qq, fitted)
        offset = where(above, every(ZERO), offset)
        error = every(ZERO)
        for i in range(len(x)):
            t = load(q, i) * fitted + offset - load(x, i)
            t = magnitude(t) if absolute else t * t
            error = error + t * load(counts, i)
        better = (determinant > ZERO) & (error < best)
        best, scale = where(better, error, best), where(better, fitted, scale)
        best_low, best_inverse = where(better, low, best_low), where(better, inverse, best_inverse)
        low = where(better, offset, low)
    store(found, SCALE, where(flat, every(ZERO), scale))
    store(found, LOW, best_low)
    store(found, INVERSE, where(flat, every(ZERO), best_inverse))
    store(found, ZEROS, negative(low))  # the min, as it is subtracted


@inner
def integers_with_min(x: Any, i: Any, found: Any, top: Any, cut_first: Any) -> Any:
    """What the search left for weight i."""
    v = (load(x, i) - load(found, LOW)) * load(found, INVERSE)
    return _integers(v, top, cut_first)


@inner
def scale_alone(x: Any, counts: Any, top: Any, found: Any) -> None:
    """``search_scale``.   x, counts: tiles, counts the squares of x where nothing else is known."""
    extreme = largest(x)
    zero = magnitude(extreme) < SMALLEST
    scale = best = best_inverse = every(ZERO)
    for attempt in range(19):  # 0, then -9 … 9 without it
        i = 0 if attempt == 0 else attempt - 10 if attempt < 10 else attempt - 9
        inverse = every(-(f32(top) + f32(0.1) * f32(i))) / extreme
        sum_qx, sum_qq = every(ZERO), every(ZERO)
        for j in range(len(x)):
            v, c = load(x, j), load(counts, j)
            k = between(rint(v * inverse), -top, top - ONE)
            sum_qx, sum_qq = sum_qx + c * v * k, sum_qq + c * k * k
        fitted = sum_qx / sum_qq
        if attempt == 0:
            scale = where(sum_qq == ZERO, every(ZERO), fitted)
            best, best_inverse = scale * sum_qx, inverse
        else:
            better = (sum_qq > ZERO) & (sum_qx * sum_qx > best * sum_qq)
            scale = where(better, fitted, scale)
            best = where(better, scale * sum_qx, best)
            best_inverse = where(better, inverse, best_inverse)
    store(found, SCALE, where(zero, every(ZERO), scale))
    store(found, INVERSE, best_inverse)
    store(found, ZEROS, where(zero, every(ONE), every(ZERO)))


@inner
def integers_around_zero(x: Any, i: Any, found: Any, top: Any) -> Any:
    """What the search left for weight i, before any cut."""
    return where(load(found, ZEROS) > ZERO, every(-top), rint(load(x, i) * load(found, INVERSE)))


@inner
def scale_of_3_bits(x: Any, counts: Any, found: Any, q: Any) -> None:
    """``search_scale_of_3_bits``.   x, counts: tiles -> q: the integers; found: ``SCALE`` and ``ZEROS``."""
    extreme = largest(x)
    zero = magnitude(extreme) < SMALLEST
    inverse = every(f32(-4)) / extreme
    for i in range(len(x)):
        store(q, i, at_least(at_most(rint(load(x, i) * inverse), f32(3)), f32(-4)))
    scale = improved(x, counts, q, False, f32(-4), f32(3))
    store(found, SCALE, where(zero, every(ZERO), scale))
    store(found, ZEROS, where(zero, every(ONE), every(ZERO)))


@inner
def improved(x: Any, counts: Any, q: Any, unsigned: Any, bottom: Any, top: Any) -> Any:
    """``_improve``: the scale; q is changed in place."""
    sum_qx, sum_qq = every(ZERO), every(ZERO)
    for i in range(len(x)):
        v, c, k = load(x, i), load(counts, i), load(q, i)
        sum_qx, sum_qq = sum_qx + c * v * k, sum_qq + c * k * k
        if unsigned:
            store(q, i, eight_bits(k))
    for _ in range(5):
        moved = False
        for i in range(len(x)):
            v, c, k = load(x, i), load(counts, i), load(q, i)
            product = c * v
            others_qx, others_qq = sum_qx - product * k, sum_qq - c * k * k
            new = at_most(nearest(v * others_qq / others_qx), top)
            if not unsigned:
                new = at_least(new, bottom)
            new_qx, new_qq = others_qx + product * new, others_qq + c * new * new
            better = (others_qx > ZERO) & (new != k) & (new_qq > ZERO)
            if unsigned:
                better = better & (others_qq > ZERO)
            better = better & (new_qx * new_qx * sum_qq > sum_qx * sum_qx * new_qq)
            if anywhere(better):
                moved = True
                store(q, i, where(better, eight_bits(new) if unsigned else new, k))
                sum_qx, sum_qq = where(better, new_qx, sum_qx), where(better, new_qq, sum_qq)
        if not moved:
            break
    return where(sum_qq == ZERO, every(ZERO), sum_qx / sum_qq)


@inner
def positive_scale(x: Any, counts: Any, top: Any, q: Any) -> Any:
    """``search_positive_scale``: the scale.   x, counts: tiles -> q: the integers."""
    high = highest(x)
    zero = high < SMALLEST
    best = inverse = every(ZERO)
    for attempt in range(9):  # 0, then -4 … 4 without it
        i = 0 if attempt == 0 else attempt - 5 if attempt < 5 else attempt - 4
        tried = every(f32(0.1) * f32(i) + top) / high
        worth, error = every(ONE) / tried, every(ZERO)
        for j in range(len(x)):
            v = load(x, j)
            k = nearest(tried * v)
            k = eight_bits(k) if attempt == 0 else at_most(k, top)
            difference = v - worth * k
            error = error + load(counts, j) * difference * difference
        if attempt == 0:
            best, inverse = error, tried
        else:
            better = error < best
            best, inverse = where(better, error, best), where(better, tried, inverse)
    for i in range(len(x)):
        store(q, i, at_most(nearest(inverse * load(x, i)), top))
    scale = improved(x, counts, q, True, ZERO, top)
    for i in range(len(x)):
        store(q, i, where(zero, every(ZERO), load(q, i)))
    return where(zero, every(ZERO), scale)
