"""The scale that suits integers best."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit


def fitted_scale(x, q):
    """The scale that suits integers best.

    x: (n, weights) float32, q: (n, weights) int8   ->   (n,) float32: s where the sum of (x - s·q)² is smallest, 0 if all q are
    """
    q = q.astype(np.float64)
    up, down = (x * q).sum(axis=1), (q * q).sum(axis=1)
    return np.divide(up, down, out=np.zeros_like(up), where=down > 0).astype(np.float32)


def oracle(x, q):
    """Row by row, with exact sums."""
    found = []
    for weights, integers in zip(x.tolist(), q.tolist()):
        down = sum(i * i for i in integers)
        up = math.fsum(w * i for w, i in zip(weights, integers))
        found.append(up / down if down else 0.0)
    return np.array(found, np.float32)


def cases(random):
    """Exact multiples, rounded ones, zeros, two rows, then random weights."""
    made = [
        ([[2.0, 4.0, -6.0]], [[1, 2, -3]]),
        ([[2.5, 4.0, -7.0, 1.0]], [[1, 2, -3, 0]]),
        ([[1.0, -1.0]], [[0, 0]]),
        ([[3.0, 1.0], [-2.0, 9.0]], [[-1, 1], [1, 3]]),
    ]
    cases = [(np.array(x, np.float32), np.array(q, np.int8)) for x, q in made]
    x = random.normal(0, 1, (6, 16)).astype(np.float32)
    return [*cases, (x, np.rint(x * 9).clip(-32, 31).astype(np.int8))]


EXERCISE = Exercise(
    goal="For integers that are chosen already, find the scale that makes the sum of squared errors smallest.",
    reference=fitted_scale, oracle=oracle, cases=cases, minutes=7, difficulty="stretch", tolerance=1e-6,
    hints=(
        "The error is Σ(x - s·q)². Its derivative by s is -2·Σq·(x - s·q); set it to zero and solve for s.",
        "s = Σx·q / Σq², along the last axis, and 0 where all q are 0. int8 overflows in q × q: convert it first.",
    ),
    why="ggml tries some twenty ways to round, fits each like this, and keeps the best: that is its whole secret.",
    mistakes=(
        Mistake("the mean of the ratios", edit(
                "(x * q).sum(axis=1), (q * q).sum(axis=1)",
                "np.divide(x, q, out=np.zeros(x.shape), where=q != 0).sum(axis=1), (q != 0).sum(axis=1)",
            ),
            cause="Every x / q counts the same, and a small q has a ratio that is mostly rounding.",
            cure="Weigh them by q²: Σx·q / Σq².", see="right for exact multiples, a little off for the rest"),
        Mistake("the ratio of the sums", edit("(x * q).sum(axis=1), (q * q).sum(axis=1)", "x.sum(axis=1, dtype=np.float64), q.sum(axis=1)").edit(
                "down > 0", "down != 0"
            ),
            cause="Σx / Σq lets positive and negative weights cancel.",
            cure="Multiply both by q before you sum.", see="wild numbers where the signs are mixed"),
        Mistake("the largest over the largest", edit(
                "(x * q).sum(axis=1), (q * q).sum(axis=1)",
                "np.abs(x).max(axis=1).astype(np.float64), np.abs(q).max(axis=1)",
            ),
            cause="One weight decides alone, as in Q4_0.",
            cure="Let all weights speak: Σx·q / Σq².", see="right for exact multiples only, and never negative"),
        Mistake("divided by Σx²", edit("(q * q).sum(axis=1)", "(x.astype(np.float64) ** 2).sum(axis=1)"),
            cause="That is the factor from weights to integers.",
            cure="Divide by Σq².", see="about one over the scale"),
        Mistake("Σx² over Σx·q", edit(
                "(x * q).sum(axis=1), (q * q).sum(axis=1)",
                "(x.astype(np.float64) ** 2).sum(axis=1), (x * q).sum(axis=1)",
            ).edit("down > 0", "down != 0"),
            cause="That fits q to x and turns it round; it is always a little too large.",
            cure="Take Σx·q / Σq².", see="right for exact multiples, a little too large for the rest"),
        Mistake("squared in int8", edit("    q = q.astype(np.float64)\n", "")
            .edit(
                "(x * q).sum(axis=1), (q * q).sum(axis=1)",
                "(x * q).sum(axis=1, dtype=np.float64), (q * q).sum(axis=1, dtype=np.int8)",
            )
            .edit("down > 0", "down != 0"),
            cause="An int8 holds 127 at most, and q × q overflows in silence.",
            cure="Convert q to floating point before you square it.",
            see="right for few small integers, nonsense for many"),
        Mistake("one scale for all rows", edit(
                "(x * q).sum(axis=1), (q * q).sum(axis=1)",
                "np.full(len(x), (x * q).sum()), np.full(len(x), (q * q).sum())",
            ),
            cause="The sums went over all rows.",
            cure="Sum along the last axis, `axis=1`.", see="right for one row, equal scales for more"),
        Mistake("no answer for zeros",
            edit("np.divide(up, down, out=np.zeros_like(up), where=down > 0)", "(up / down)"),
            cause="Where all q are 0, that is 0 / 0.",
            cure="Return 0 there.", see="`nan`"),
    ),
)
