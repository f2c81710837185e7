"""The scale and the minimum that suit given integers best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...lab import Exercise, Mistake, body, edit


def fit_scale_and_minimum(w, q):
    """The scale and the minimum that suit integers best: the line scale × q
    + minimum that is nearest to the weights.

    w: (n, k) float32, from -10 to 10, q: (n, k) uint8 from 0 to 15
    ->   scale, minimum: (n, 1) float32, for each block the two numbers with
         the smallest sum of (w - scale × q - minimum)², right to 2e-6; a
         scale may be negative; where all q of a block are equal, its scale
         is 0
    """
    mean_q, mean_w = q.mean(axis=1, keepdims=True), w.mean(axis=1, keepdims=True)  # (n, 1)
    up = ((q - mean_q) * (w - mean_w)).sum(axis=1, keepdims=True)
    down = ((q - mean_q) ** 2).sum(axis=1, keepdims=True)
    scale = np.divide(up, down, out=np.zeros_like(up), where=down > 0)
    return scale.astype(np.float32), (mean_w - scale * mean_q).astype(np.float32)


class Line(NamedTuple):
    """The two numbers of each block, by name."""

    scale: np.ndarray
    minimum: np.ndarray


def oracle(w, q):
    """One block at a time, by numpy's own least squares."""
    found = []
    for weights, integers in zip(w.astype(np.float64), q.astype(np.float64)):
        if np.ptp(integers) == 0:
            found.append((0.0, weights.mean()))
        else:
            columns = np.stack([integers, np.ones_like(integers)], axis=1)
            found.append(tuple(np.linalg.lstsq(columns, weights, rcond=None)[0]))
    scale, minimum = np.array(found, np.float32).T[..., None]
    return Line(scale, minimum)


def cases(random):
    """Weights on a line, near one, a minimum above 0, equal integers, several blocks, negative scales, one weight, random ones."""

    def case(w, q):
        return np.array(w, np.float32), np.array(q, np.uint8)

    w = random.normal(0, 0.1, (20, 32)).astype(np.float32)
    low = w.min(axis=1, keepdims=True)
    flat = 5 + random.normal(0, 0.1, (2, 32))  # far from zero, with two integers next to each other
    return [
        case([[-1, 0, 1, 2]], [[0, 1, 2, 3]]),
        case([[0, 1, 2, 6]], [[0, 1, 2, 3]]),
        case([[0.5, 1, 1.5, 1]], [[7, 7, 7, 7]]),
        case([[-1, 0, 1, 2], [4, 2, 9, 1], [1, 2, 1, 4]], [[0, 1, 2, 3], [5, 3, 15, 0], [7, 7, 7, 8]]),
        case([[3, 1, -1, -4], [1, 1, 4, 1], [0, 1, 2, 3]], [[0, 5, 9, 15], [7, 7, 7, 7], [2, 2, 3, 3]]),
        case([[0.5], [-2]], [[3], [0]]),
        case(flat, 14 + (flat > 5)),
        (w, np.rint((w - low) * np.float32(15) / np.ptp(w, axis=1, keepdims=True)).astype(np.uint8)),
    ]


EXERCISE = Exercise(
    goal="For integers that are chosen already, find the scale and the minimum with the smallest squared error.",
    reference=fit_scale_and_minimum, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=2e-6,
    hints=(
        "It is the line of least squares through the points (q, w). Its slope is the scale, and it goes through the mean of the points: that gives the minimum.",
        "`mean` and `sum` with `axis=1, keepdims=True` work block by block. `np.divide` with `out` and `where` leaves the scale at 0 where all q are equal.",
    ),
    why="whatever rounds the weights, the best scale and minimum for its integers now follow from a formula.",
    mistakes=(
        Mistake("a line through the ends", body("""
                low, high = q.min(axis=1, keepdims=True), q.max(axis=1, keepdims=True)
                least, most = w.min(axis=1, keepdims=True), w.max(axis=1, keepdims=True)
                scale = (most - least) / np.maximum(high - low, 1) * (high > low)
                minimum = np.where(high > low, least - scale * low, w.mean(axis=1, keepdims=True))
                return scale.astype(np.float32), minimum.astype(np.float32)
            """),
            cause="Your line meets the smallest and the largest weight. The other weights have no say in it.",
            cure="Use all weights: the slope is a ratio of two sums.", see="right for weights on a line, a little off for the rest"),
        Mistake("a line through zero",
            edit("((q - mean_q) * (w - mean_w))", "(q * w)").edit("((q - mean_q) ** 2)", "(q.astype(np.float64) ** 2)")
            .edit("(mean_w - scale * mean_q)", "(0 * mean_w)"),
            cause="The minimum is 0, and the scale is the best one for a line through zero.",
            cure="Subtract the means first; then the line may begin anywhere.", see="0 in every minimum"),
        Mistake("the smallest weight as the minimum", edit("(mean_w - scale * mean_q)", "w.min(axis=1, keepdims=True)"),
            cause="The minimum is the smallest weight of the block.",
            cure="Let the line go through the mean of the points.", see="scales right; minimum right for weights on a line that begins at q = 0"),
        Mistake("the mean as the minimum", edit("(mean_w - scale * mean_q)", "mean_w"),
            cause="The minimum is the mean of the weights, where the line is at the mean of q and not at q = 0.",
            cure="Go back from there by scale × mean of q.", see="scales right, every minimum too large"),
        Mistake("gone back the wrong way", edit("(mean_w - scale * mean_q)", "(mean_w + scale * mean_q)"),
            cause="From the mean, scale × mean of q was added.",
            cure="Subtract it.", see="scales right, the minimum above every weight"),
        Mistake("q and w exchanged",
            edit("((q - mean_q) ** 2)", "((w - mean_w) ** 2)").edit("scale = np.divide(up, down, out=np.zeros_like(up), where=down > 0)",
                "scale = np.divide(up, down, out=np.zeros_like(up), where=down > 0) * (np.ptp(q, axis=1, keepdims=True) > 0)"),
            cause="The sum was divided by the squares of w. That is the slope of q over w.",
            cure="Divide by the sum of the squares of q, its mean subtracted.", see="about one over the scale"),
        Mistake("k - 1 here and k there", edit("up, down, out", "up / (q.shape[1] - 1), down / q.shape[1], out"),
            cause="The sum of the products was divided by k - 1 and the sum of the squares by k.",
            cure="Divide the two sums, or both of them by the same number.", see="every scale too large by a small factor, a third for four weights"),
        Mistake("one line for all blocks", edit("q.mean(axis=1, keepdims=True), w.mean(axis=1, keepdims=True)", "np.full((len(q), 1), q.mean()), np.full((len(w), 1), w.mean())")
            .edit("* (w - mean_w)).sum(axis=1, keepdims=True)", "* (w - mean_w)).sum() + 0 * mean_q")
            .edit("** 2).sum(axis=1, keepdims=True)", "** 2).sum() + 0 * mean_q"),
            cause="The sums go over all blocks.",
            cure="Sum along the last axis, `axis=1, keepdims=True`.", see="right for one block, the same numbers in every block for more"),
        Mistake("no answer for equal integers", edit("np.divide(up, down, out=np.zeros_like(up), where=down > 0)", "up / down"),
            cause="Where all q are equal, 0 is divided by 0.",
            cure="Divide only where there is something to divide by.", see="`nan` for a block of equal integers"),
        Mistake("rows instead of columns", edit("return scale.astype(np.float32), (mean_w - scale * mean_q).astype(np.float32)", "return scale[:, 0].astype(np.float32), (mean_w - scale * mean_q)[:, 0].astype(np.float32)"),
            cause="The two results have one axis.",
            cure="Keep the axis of the weights, with `keepdims=True`.", see="the shape (1,) where (1, 1) is expected"),
        Mistake("float64 results", edit("return scale.astype(np.float32), (mean_w - scale * mean_q).astype(np.float32)", "return scale.astype(np.float64), (mean_w - scale * mean_q).astype(np.float64)"),
            cause="The mean of integers is a float64, and so is what you computed from it.",
            cure="Convert both results to float32.", see="the dtype float64"),
    ),
)
