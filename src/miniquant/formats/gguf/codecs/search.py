"""How K-quants choose a scale: try some near the obvious one, fit each by least squares, keep the best.

The obvious scale just reaches the largest weight. A slightly larger one cuts it off and is finer for the others; a
smaller one wastes a step. For integers that are chosen already, the best scale (and min) follow from a formula.
Everything runs on many sub-blocks at once: a column is a sub-block, so that every sum goes down a column in ggml's
order, and its float32 rounding is ggml's.

Source: ``make_qkx2_quants``, ``make_qkx3_quants``, ``make_qx_quants``, ``make_q3_quants`` and ``make_qp_quants`` in
ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .common import sums

f32 = np.float32
SMALLEST = f32(1e-15)  # of the largest weight of a sub-block: below, all of them are taken for zeros
LARGEST = f32(2**22 - 1)  # magnitude that ggml rounds to the nearest integer


class Search(NamedTuple):
    """What was found for every sub-block."""

    scale: np.ndarray  # (sub-blocks,) float32
    min: np.ndarray  # (sub-blocks,) float32, what is subtracted
    q: Callable[[np.ndarray], np.ndarray]  # indices of k sub-blocks -> their integers (weights, k), before any cut


def integers(found: Search, count: int, bottom: int, top: int) -> np.ndarray:
    """The integers of all ``count`` sub-blocks, cut to ``bottom`` … ``top`` and counted from 0.   -> uint8."""
    q: np.ndarray = np.fmax(np.fmin(found.q(np.arange(count)), f32(top)), f32(bottom)) - f32(bottom)
    return q.astype(np.uint8)


def finer_steps(top: int) -> np.ndarray:
    """The attempts that ggml makes where it has an importance matrix: half as far apart as without."""
    return steps(top, -0.9, 36, 0.05)


def steps(top: int, first: float, count: int, by: float = 0.1) -> np.ndarray:
    """How many steps the range of a sub-block is cut into, in each attempt: from ``top + first`` on, tenths apart.

    >>> [round(float(step), 1) for step in steps(15, -1.0, 20)[:3]]
    [14.0, 14.1, 14.2]
    """
    return f32(first) + f32(by) * np.arange(count + 1, dtype=f32) + f32(top)


def nearest(v: np.ndarray) -> np.ndarray:
    """``v`` rounded to integers, in place, as ggml's ``nearest_int`` does it.

    It adds 1.5 · 2²³ and takes the lower 23 bits of the sum for the integer. Up to 2²² that is the nearest integer.
    A larger number leaves bits that mean nothing, infinity leaves -2²² and NaN 0. ggml computes with those.

    >>> nearest(np.array([2.5, -0.7, 5e6, np.inf, np.nan], np.float32)).astype(int).tolist()
    [2, -1, -3791456, -4194304, 0]
    """
    if v.size and not (v.min() >= -LARGEST and v.max() <= LARGEST):  # NaN is never within
        bits = (v + f32(3 * 2**22)).view(np.int32)
        np.copyto(v, (bits & (2**23 - 1)) - 2**22)
    else:
        np.rint(v, out=v)
    return v


def search_scale_and_min(
    x: np.ndarray, importance: np.ndarray, top: int, factors: np.ndarray, *, absolute: bool, cut_first: bool
) -> Search:
    """A scale and a min for integers of 0 to ``top``, whose weighted error is smallest of all that are tried.

    x, importance: (weights, sub-blocks) float32, contiguous. The error is squared, or ``absolute``. The min is never
    above zero: a sub-block of positive weights counts from zero.

    ``cut_first``: cut to 0 … ``top``, then round, as ggml does with an importance matrix; without one, it rounds first.
    That makes a difference where a min so close to the largest weight was found that hardly a range is left.
    """
    first, last = (  # of two zeros, the one that comes first, with its sign
        np.take_along_axis(x, at[None], axis=0)[0] for at in (x.argmin(axis=0), x.argmax(axis=0))
    )
    low, high = np.where(first > 0, f32(0), first), last
    q, t, weighted = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    total = sums(importance)
    total_x = sums(np.multiply(importance, x, out=t), start=-0.0)  # the sign of a zero matters: 1 / 0 is infinite

    def to_integers(v: np.ndarray) -> np.ndarray:
        """In place."""
        if not cut_first:
            nearest(v)
        np.fmax(v, f32(0), out=v)  # NaN becomes 0
        np.fmin(v, f32(top), out=v)
        return np.rint(v, out=v) if cut_first else v

    def round_to(inverse: np.ndarray) -> None:
        np.subtract(x, low, out=q)
        np.multiply(q, inverse, out=q)
        to_integers(q)

    def error(scale: np.ndarray, offset: np.ndarray) -> np.ndarray:
        np.multiply(q, scale, out=t)
        np.add(t, offset, out=t)
        np.subtract(t, x, out=t)
        if absolute:
            np.abs(t, out=t)
        else:
            np.multiply(t, t, out=t)
        total: np.ndarray = sums(np.multiply(t, importance, out=t))
        return total

    inverse = f32(top) / (high - low)
    scale, flat = f32(1) / inverse, high == low
    inverse = np.where(np.isfinite(inverse), inverse, f32(0))  # every integer becomes 0
    round_to(inverse)
    best = error(scale, low)
    best_low, best_inverse = low, inverse
    for factor in factors:
        inverse = factor / (high - low)
        round_to(inverse)
        np.multiply(importance, q, out=weighted)
        sum_q = sums(weighted)
        sum_qq = sums(np.multiply(weighted, q, out=t))
        sum_qx = sums(np.multiply(weighted, x, out=t))
        determinant = total * sum_qq - sum_q * sum_q
        fitted = (total * sum_qx - total_x * sum_q) / determinant
        offset = (sum_qq * total_x - sum_q * sum_qx) / determinant
        above = offset > 0
        fitted = np.where(above, sum_qx / sum_qq, fitted)
        offset = np.where(above, f32(0), offset)
        found = error(fitted, offset)
        better = (determinant > 0) & (found < best)
        best, scale = np.where(better, found, best), np.where(better, fitted, scale)
        best_low, best_inverse = np.where(better, low, best_low), np.where(better, inverse, best_inverse)
        low = np.where(better, offset, low)  # the next attempt counts from here

    def integers(chosen: np.ndarray) -> np.ndarray:
        found = to_integers((x[:, chosen] - best_low[chosen]) * best_inverse[chosen])
        return np.where(flat[chosen], f32(0), found)

    return Search(np.where(flat, f32(0), scale), -low, integers)


def search_scale(x: np.ndarray, top: int, importance: np.ndarray | None = None) -> Search:
    """A scale for integers of ``-top`` to ``top - 1``; without ``importance`` a weight counts as much as its square.

    x, importance: (weights, sub-blocks) float32, contiguous. The scale's sign lets the largest weight be ``-top``.
    """
    extreme = largest(x)
    zero = np.abs(extreme) < SMALLEST
    counts = x * x if importance is None else importance
    product, q, t = counts * x, np.empty_like(x), np.empty_like(x)

    def products(inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        np.multiply(x, inverse, out=q)
        np.rint(q, out=q)
        np.maximum(q, f32(-top), out=q)
        np.minimum(q, f32(top - 1), out=q)
        sum_qx = sums(np.multiply(product, q, out=t))
        np.multiply(counts, q, out=t)
        return sum_qx, sums(np.multiply(t, q, out=t))

    best_inverse = f32(-top) / extreme
    sum_qx, sum_qq = products(best_inverse)
    scale = np.where(sum_qq == 0, f32(0), sum_qx / sum_qq)  # NaN, if a weight was
    best = scale * sum_qx
    for i in [*range(-9, 0), *range(1, 10)]:
        inverse = -(f32(top) + f32(0.1) * f32(i)) / extreme
        sum_qx, sum_qq = products(inverse)
        better = (sum_qq > 0) & (sum_qx * sum_qx > best * sum_qq)
        scale = np.where(better, sum_qx / sum_qq, scale)
        best = np.where(better, scale * sum_qx, best)
        best_inverse = np.where(better, inverse, best_inverse)

    def integers(chosen: np.ndarray) -> np.ndarray:
        return np.where(zero[chosen], f32(-top), np.rint(x[:, chosen] * best_inverse[chosen]))

    return Search(np.where(zero, f32(0), scale), np.zeros_like(scale), integers)


def search_scale_of_3_bits(x: np.ndarray) -> Search:
    """A scale for integers of -4 to 3: five times over, every weight may move to the integer that now fits best.

    x: (weights, sub-blocks) float32, contiguous.
    """
    extreme = largest(x)
    zero = np.abs(extreme) < SMALLEST
    q = np.fmax(np.fmin(np.rint(x * (f32(-4) / extreme)), f32(3)), f32(-4))
    scale = _improve(x, x * x, q, -4, 3)

    def integers(chosen: np.ndarray) -> np.ndarray:
        return np.where(zero[chosen], f32(-4), q[:, chosen])

    return Search(np.where(zero, f32(0), scale), np.zeros_like(scale), integers)


def search_positive_scale(x: np.ndarray, importance: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """A scale for integers of 0 to ``top``, for numbers of which none is below zero, and the integers.

    x, importance: (numbers, columns) float32   ->   (columns,) float32, (numbers, columns) float32

    Where the importance is zero in places, least squares may have found a number below zero after all. Its integer is
    kept in eight bits without a sign: -1 becomes 255, here as in ggml.
    """
    high = np.maximum(x.max(axis=0), f32(0))
    zero = high < SMALLEST
    inverse = f32(top) / high

    def error(inverse: np.ndarray, q: np.ndarray) -> np.ndarray:
        difference = x - f32(1) / inverse * q
        total: np.ndarray = sums(importance * difference * difference)
        return total

    best = error(inverse, nearest(inverse * x) % f32(256))
    for i in [*range(-4, 0), *range(1, 5)]:
        tried = (f32(0.1) * f32(i) + f32(top)) / high
        found = error(tried, np.minimum(nearest(tried * x), f32(top)))
        better = found < best
        best, inverse = np.where(better, found, best), np.where(better, tried, inverse)
    q = np.minimum(nearest(inverse * x), f32(top))
    scale = _improve(x, importance, q, -np.inf, top)
    return np.where(zero, f32(0), scale), np.where(zero, f32(0), q)


def _improve(x: np.ndarray, importance: np.ndarray, q: np.ndarray, bottom: float, top: float) -> np.ndarray:
    """Five times over, every weight may move to the integer that now fits best; the scale that fits all of them.

    x, importance, q: (weights, sub-blocks) float32, q is changed in place   ->   (sub-blocks,) float32

    Without a ``bottom`` the integers are kept in eight bits; the sums take each as it was before that.
    """
    product = importance * x
    sum_qx = sums(product * q)
    sum_qq = sums(importance * q * q)
    unsigned = bottom == -np.inf
    if unsigned:
        q %= f32(256)
    for _ in range(5):
        before = q.copy()
        for i in range(len(x)):
            others_qx = sum_qx - product[i] * q[i]
            others_qq = sum_qq - importance[i] * q[i] * q[i]
            new = np.maximum(np.minimum(nearest(x[i] * others_qq / others_qx), f32(top)), f32(bottom))
            new_qx = others_qx + product[i] * new
            new_qq = others_qq + importance[i] * new * new
            better = (others_qx > 0) & (new != q[i]) & (new_qq > 0)
            if unsigned:
                better &= others_qq > 0
            better &= new_qx * new_qx * sum_qq > sum_qx * sum_qx * new_qq
            np.copyto(q[i], new % f32(256) if unsigned else new, where=better)
            np.copyto(sum_qx, new_qx, where=better)
            np.copyto(sum_qq, new_qq, where=better)
        if np.array_equal(q, before):
            break
    return np.where(sum_qq == 0, f32(0), sum_qx / sum_qq)  # NaN, if a weight was


def largest(x: np.ndarray) -> np.ndarray:
    """The weight of largest magnitude in every column, with its sign; the first of two."""
    found: np.ndarray = np.take_along_axis(x, np.abs(x).argmax(axis=0)[None], axis=0)[0]
    return found
