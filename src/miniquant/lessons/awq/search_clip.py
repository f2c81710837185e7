"""How much of a range to keep."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest16, nearest32


def search_clip(w, hessian, ratios):
    """How much of a group's range to keep.

    w: (n,) float32, one group, not all 0; hessian: (n, n) float64; ratios: a list that begins with 1.0
    ->   the ratio (the first one, of several) whose rounding moves the output least. For a ratio: scale =
    float16(absmax × ratio / 7), integers w / scale rounded half to even and clipped to -7 … 7
    """

    def error(ratio):
        scale = np.float32(np.float16(np.abs(w).max() * np.float32(ratio) / np.float32(7)))
        change = (np.rint(w / scale).clip(-7, 7) * scale).astype(np.float64) - w
        return change @ hessian @ change

    return min(ratios, key=error)


def oracle(w, hessian, ratios):
    """Sums written out, weight by weight; the first of the best."""
    weights, rows = w.tolist(), hessian.tolist()
    best, least = ratios[0], math.inf
    for ratio in ratios:
        scale = nearest16(nearest32(nearest32(max(abs(x) for x in weights) * nearest32(ratio)) / 7))
        back = [scale * max(-7, min(7, round(nearest32(x / scale)))) for x in weights]
        change = [b - x for b, x in zip(back, weights)]
        error = math.fsum(a * h * b for a, row in zip(change, rows) for h, b in zip(row, change))
        if error < least:
            best, least = ratio, error
    return best


RATIOS = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]


def cases(random):
    """One weight far out with three Hessians, then random groups."""
    ends = np.array([8, 1.3, -0.6, 0.4, 0.9, -1.7, 0.2, 1.1], np.float32)  # one weight far out
    careless, careful = np.diag([1e-3, *[1.0] * 7]), np.diag([50.0, *[1.0] * 7])
    cases = [(ends, careless, RATIOS), (ends, np.eye(8), RATIOS), (ends, careful, RATIOS)]
    for n in (8,) * 8 + (48,) * 4:
        x = random.normal(size=(60, n)) * random.choice([0.3, 1, 4], n) + random.normal(size=(60, 1))
        cases.append((random.standard_t(3, n).astype(np.float32), x.T @ x / 60, RATIOS))
    return cases


EXERCISE = Exercise(
    goal="Find how much of a group's range to keep, so that rounding it to four bits moves the output least.",
    reference=search_clip, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-9,
    hints=(
        "For each ratio: the scale is float16(absmax × ratio / 7), the integers are clipped to -7 … 7, and the error is the quadratic form of the change with the hessian.",
        "`@` twice gives the quadratic form. Measure the change against the weights as they were, clipped ones included. `min` with a `key` finds the first of the best.",
    ),
    why="a single weight no longer decides how coarsely its whole group is rounded.",
    mistakes=(
        Mistake("without the Hessian", edit("change @ hessian @ change", "change @ change"),
            cause="All weights count the same, though some meet large activations and some hardly any.",
            cure="Weigh the change with the Hessian: `change @ hessian @ change`.",
            see="the best ratio for the weights, not for the output"),
        Mistake("only the diagonal", edit("change @ hessian @ change", "change @ np.diag(np.diag(hessian)) @ change"),
            cause="Errors of two columns that move together add up or cancel, and the diagonal knows nothing of it.",
            cure="Use the whole Hessian.", see="right where the Hessian is diagonal"),
        Mistake("measured against the clipped weights",
            edit(".astype(np.float64) - w", ".astype(np.float64) - w.clip(-scale * 7, scale * 7)"),
            cause="The change was measured from the clipped weights, so that clipping itself seems to cost nothing.",
            cure="Compare with the weights as they were.", see="a small ratio nearly always"),
        Mistake("the integers not clipped", edit(".clip(-7, 7)", ""),
            cause="An integer of 9 was allowed, and four bits hold -7 to 7 here.",
            cure="Add `.clip(-7, 7)` after `np.rint`.", see="0.5 nearly always"),
        Mistake("the worst", edit("min(ratios", "max(ratios"),
            cause="The ratio with the largest error was returned.",
            cure="Take the smallest error.", see="a ratio that nobody wants"),
        Mistake("divided by 8", edit("np.float32(7)", "np.float32(8)"),
            cause="The scale of 4 bits from -7 to 7 is absmax / 7; with 8 even ratio 1 clips.",
            cure="Divide by 7.", see="a ratio one step too large, here and there"),
        Mistake("never clipped", edit("min(ratios, key=error)", "ratios[0]"),
            cause="The whole range was kept without a search.",
            cure="Compute the error for each ratio.", see="1.0 always"),
        Mistake("the error instead of the ratio", edit("min(ratios, key=error)", "min(map(error, ratios))"),
            cause="The smallest error was returned, and the question is which ratio gives it.",
            cure="Return the ratio: `min(ratios, key=error)`.", see="a number that is none of the ratios"),
    ),
)
