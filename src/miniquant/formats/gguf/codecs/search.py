"""How K-quants choose a scale: try some near the obvious one, fit each by least squares, keep the best.

The obvious scale just reaches the largest weight. A slightly larger one cuts it off and is finer for the others; a
smaller one wastes a step. For integers that are chosen already, the best scale (and min) follow from a formula.
Everything runs on many sub-blocks at once: a column is a sub-block, so that every sum goes down a column in ggml's
order, and its float32 rounding is ggml's.

Source: ``make_qkx2_quants``, ``make_qx_quants`` and ``make_q3_quants`` in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

SMALLEST = np.float32(1e-15)  # of the largest weight of a sub-block: below, all of them are taken for zeros
f32 = np.float32


class Search(NamedTuple):
    """What was found for every sub-block."""

    scale: np.ndarray  # (sub-blocks,) float32
    min: np.ndarray  # (sub-blocks,) float32, what is subtracted
    q: Callable[[np.ndarray], np.ndarray]  # indices of k sub-blocks -> their integers (weights, k), before any cut


def steps(top: int, first: float, count: int) -> np.ndarray:
    """How many steps the range of a sub-block is cut into, in each attempt: tenths, from ``top + first``.

    >>> [round(float(step), 1) for step in steps(15, -1.0, 20)[:3]]
    [14.0, 14.1, 14.2]
    """
    return f32(first) + f32(0.1) * np.arange(count + 1, dtype=f32) + f32(top)


def search_scale_and_min(
    x: np.ndarray, importance: np.ndarray, top: int, factors: np.ndarray, absolute: bool
) -> Search:
    """A scale and a min for integers of 0 to ``top``, whose weighted error is smallest of all that are tried.

    x, importance: (weights, sub-blocks) float32, contiguous. The error is squared, or ``absolute``. The min is never
    above zero: a sub-block of positive weights counts from zero.
    """
    low, high = np.minimum(x.min(axis=0), f32(0)), x.max(axis=0)
    q, t, weighted = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    total = np.add.reduce(importance, axis=0)
    total_x = np.add.reduce(np.multiply(importance, x, out=t), axis=0)

    def round_to(inverse: np.ndarray) -> None:
        np.subtract(x, low, out=q)
        np.multiply(q, inverse, out=q)
        np.rint(q, out=q)
        np.maximum(q, f32(0), out=q)
        np.minimum(q, f32(top), out=q)

    def error(scale: np.ndarray, offset: np.ndarray) -> np.ndarray:
        np.multiply(q, scale, out=t)
        np.add(t, offset, out=t)
        np.subtract(t, x, out=t)
        if absolute:
            np.abs(t, out=t)
        else:
            np.multiply(t, t, out=t)
        total: np.ndarray = np.add.reduce(np.multiply(t, importance, out=t), axis=0)
        return total

    inverse = f32(top) / (high - low)
    scale, flat = f32(1) / inverse, high == low
    round_to(inverse)
    best = error(scale, low)
    best_low, best_inverse = low, inverse
    for factor in factors:
        inverse = factor / (high - low)
        round_to(inverse)
        np.multiply(importance, q, out=weighted)
        sum_q = np.add.reduce(weighted, axis=0)
        sum_qq = np.add.reduce(np.multiply(weighted, q, out=t), axis=0)
        sum_qx = np.add.reduce(np.multiply(weighted, x, out=t), axis=0)
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
        found = np.rint((x[:, chosen] - best_low[chosen]) * best_inverse[chosen])
        return np.where(np.isfinite(found) & ~flat[chosen], found, f32(0))

    return Search(np.where(flat, f32(0), scale), -low, integers)


def search_scale(x: np.ndarray, top: int) -> Search:
    """A scale for integers of ``-top`` to ``top - 1``; the error of a weight counts as much as its square.

    x: (weights, sub-blocks) float32, contiguous. The scale's sign lets the largest weight be ``-top``.
    """
    extreme = largest(x)
    zero = np.abs(extreme) < SMALLEST
    square = x * x
    cube, q, t = square * x, np.empty_like(x), np.empty_like(x)

    def sums(inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        np.multiply(x, inverse, out=q)
        np.rint(q, out=q)
        np.maximum(q, f32(-top), out=q)
        np.minimum(q, f32(top - 1), out=q)
        sum_qx = np.add.reduce(np.multiply(cube, q, out=t), axis=0)
        np.multiply(square, q, out=t)
        return sum_qx, np.add.reduce(np.multiply(t, q, out=t), axis=0)

    best_inverse = f32(-top) / extreme
    sum_qx, sum_qq = sums(best_inverse)
    scale = np.where(sum_qq == 0, f32(0), sum_qx / sum_qq)  # NaN, if a weight was
    best = scale * sum_qx
    for i in [*range(-9, 0), *range(1, 10)]:
        inverse = -(f32(top) + f32(0.1) * f32(i)) / extreme
        sum_qx, sum_qq = sums(inverse)
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
    square = x * x
    cube = square * x
    q = np.fmax(np.fmin(np.rint(x * (f32(-4) / extreme)), f32(3)), f32(-4))
    sum_qx = np.add.reduce(cube * q, axis=0)
    sum_qq = np.add.reduce(square * q * q, axis=0)
    for _ in range(5):
        before = q.copy()
        for i in range(len(x)):
            others_qx = sum_qx - cube[i] * q[i]
            others_qq = sum_qq - square[i] * q[i] * q[i]
            new = np.maximum(np.minimum(np.rint(x[i] * others_qq / others_qx), f32(3)), f32(-4))
            new_qx = others_qx + cube[i] * new
            new_qq = others_qq + square[i] * new * new
            better = (others_qx > 0) & (new != q[i]) & (new_qq > 0)
            better &= new_qx * new_qx * sum_qq > sum_qx * sum_qx * new_qq
            np.copyto(q[i], new, where=better)
            np.copyto(sum_qx, new_qx, where=better)
            np.copyto(sum_qq, new_qq, where=better)
        if np.array_equal(q, before):
            break
    scale = np.where(sum_qq == 0, f32(0), sum_qx / sum_qq)  # NaN, if a weight was

    def integers(chosen: np.ndarray) -> np.ndarray:
        return np.where(zero[chosen], f32(-4), q[:, chosen])

    return Search(np.where(zero, f32(0), scale), np.zeros_like(scale), integers)


def largest(x: np.ndarray) -> np.ndarray:
    """The weight of largest magnitude in every column, with its sign; the first of two."""
    found: np.ndarray = np.take_along_axis(x, np.abs(x).argmax(axis=0)[None], axis=0)[0]
    return found
