"""How much of a range to keep."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest16, nearest32


def search_clip(w, hessian, ratios):
    """How much of a group's range to keep.

    w: (n,) float32, one group, not all 0; hessian: (n, n) float64; ratios:
        a list that begins with 1.0
    ->   the ratio whose rounding has the smallest error; of several such
         ratios the first in the list

    For a ratio: scale = float16(absmax × ratio / 7), never 0, with × and /
    in any order, in float32 or float64; integers w / scale, in float32,
    rounded half to even and clipped to -7 … 7. With d, the weights that
    come back minus w, the error is d @ hessian @ d, in float64.
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
HALVES = (  # weights in steps, the step, activations: the choice hangs on halves, or on a small difference
    ([7, 1.5, 6.5, 4.5], 0.117919921875, [[1, 0, -1, 1], [1, 2, 0, -2], [2, -2, -2, 1], [0, 1, -2, 1]]),
    ([7, -0.5, -2.5, 5.5], 0.1123046875, [[2, 2, -2, 1], [0, 2, 1, 2], [-2, 1, 1, -2], [1, 2, 2, 0]]),
    ([7, 6.5, -1.5, 1.5], 0.1796875, [[-1, 1, 2, 0], [-1, 1, -1, 1], [-2, 2, -1, -2], [-2, 2, 2, 0]]),
    ([7, -2.5, -6.5, 4.5], 0.1885986328125, [[0, 0, -2, -2], [1, 0, -1, 0], [1, -1, 0, 0], [1, -2, -1, -1]]),  # integers × scale are no float16
    ([7, 6.5, -1.5, 1.5], 0.1796875 / 1024, [[-1, 1, 2, 0], [-1, 1, -1, 1], [-2, 2, -1, -2], [-2, 2, 2, 0]]),
)


def cases(random):
    """One weight far out with three Hessians, ratios that are equally good or nearly so, then random groups."""
    ends = np.array([8, 1.3, -0.6, 0.4, 0.9, -1.7, 0.2, 1.1], np.float32)  # one weight far out
    careless, careful = np.diag([1e-3, *[1.0] * 7]), np.diag([50.0, *[1.0] * 7])
    cases = [(ends, careless, RATIOS), (ends, np.eye(8), RATIOS), (ends, careful, RATIOS), (-ends, careful, RATIOS)]
    cases.append((np.array([4, 0, 1], np.float32), np.diag([0.0, 1.0, 0.0]), RATIOS))  # all ratios are equally good
    cases += [(ends, careless, [1.0]), (ends, careless / 2**50, [1.0, 0.55, 0.95, 0.45, 0.85, 0.75, 0.42, 0.65])]
    cases.append((np.array([7, 0, 0.5], np.float32), np.diag([0.0, 0.0, 1.0]), [1.0, 0.25, 0.5]))  # two are equally good
    for steps, step, rows in HALVES:
        x = np.array(rows, float)
        cases.append((np.array(steps, np.float32) * np.float32(step), x.T @ x, RATIOS))
    by = 2.0**30  # two large errors that are equal in float32: the first is larger by 1
    cases.append((np.array([7, 0.5], np.float32), np.diag([4 * by, 4 * (49 * by + 1)]), [1.0, 0.5]))
    cases.append((np.array([7, 0.3, 0.1], np.float32), np.diag([0.00204, 1, 1]), [1.0, 0.05]))  # integers up to 140 are clipped
    for n in (8,) * 5 + (48,) * 4:
        x = random.normal(size=(60, n)) * random.choice([0.3, 1, 4], n) + random.normal(size=(60, 1))
        cases.append((random.standard_t(3, n).astype(np.float32), x.T @ x / 60, RATIOS))
    for size in (1e-5, 1e-6) * 3:  # steps that float16 rounds coarsely
        w = (size * random.normal(size=8)).astype(np.float32)
        cases.append((w, np.eye(8), RATIOS))
    return cases


EXERCISE = Exercise(
    goal="Find how much of a group's range to keep, so that rounding it to four bits moves the output least.",
    reference=search_clip, oracle=oracle, cases=cases, minutes=10, difficulty="core", tolerance=1e-9,
    hints=(
        "Write a function of one ratio that gives the error, and try it on each. The weights that were cut off count with all that they lost.",
        "`np.rint` and the method `clip` give the integers. The error of a change d is d times the Hessian times d: `@` twice. `min` takes a function as its `key`.",
    ),
    why="a single weight no longer decides how coarsely its whole group is rounded.",
    mistakes=(
        Mistake("the best ratio for the weights", edit("change @ hessian @ change", "change @ change"),
            cause="This ratio moves the weights least, as if all activations were alike and moved independently.",
            cure="Put the Hessian between the change and itself.",
            see="the best ratio for the weights, not for the output"),
        Mistake("the best ratio for the diagonal", edit("change @ hessian @ change", "change @ np.diag(np.diag(hessian)) @ change"),
            cause="This ratio is best if no two columns move together: only the diagonal of the Hessian counted.",
            cure="Use the whole Hessian.", see="right where the Hessian is diagonal"),
        Mistake("as if clipping cost nothing",
            edit(".astype(np.float64) - w", ".astype(np.float64) - w.clip(-scale * 7, scale * 7)"),
            cause="This ratio is best for the clipped weights. What was cut off is an error, too.",
            cure="Compare with the weights as they were.", see="a small ratio nearly always"),
        Mistake("as if integers had no ends", edit(".clip(-7, 7)", ""),
            cause="This ratio is best if integers beyond 7 are allowed, and then the smallest step wins.",
            cure="Clip the integers to -7 … 7.", see="the smallest ratio nearly always"),
        Mistake("the worst", edit("min(ratios", "max(ratios"),
            cause="This is the ratio with the largest error.",
            cure="Take the smallest error.", see="the ratio that moves the output most"),
        Mistake("the scale not rounded", edit("np.float32(np.float16(np.abs(w).max() * np.float32(ratio) / np.float32(7)))", "np.abs(w).max() * np.float32(ratio) / np.float32(7)"),
            cause="The errors were measured with a float32 scale, and the file holds it as float16.",
            cure="Round the scale to float16 first.", see="another ratio for groups of tiny weights"),
        Mistake("steps of absmax / 8", edit("np.float32(7)", "np.float32(8)"),
            cause="This ratio is best for steps of absmax × ratio / 8, with which even ratio 1 clips.",
            cure="Divide by 7.", see="a ratio that is one too large, here and there"),
        Mistake("the last of equally good ratios", edit("min(ratios, key=error)", "min(ratios[::-1], key=error)"),
            cause="Where several ratios are equally good, the last of them was returned.",
            cure="Keep the first of them: another one must be better, not as good.", see="right unless several ratios have the same error"),
        Mistake("the range of the positive weights", edit("np.abs(w).max()", "w.max()"),
            cause="The largest weight with its sign set the scale; the largest may be negative.",
            cure="Take absolute values first.", see="right where the largest weight is positive"),
        Mistake("the index of the ratio", edit("min(ratios, key=error)", "ratios.index(min(ratios, key=error))"),
            cause="This is the position of the ratio in the list.",
            cure="Return the ratio itself.", see="0, 1, 2 … where a ratio is expected"),
        Mistake("never clipped", edit("min(ratios, key=error)", "ratios[0]"),
            cause="The first ratio was returned for every group.",
            cure="Compute the error for each ratio.", see="1.0 always"),
        Mistake("the error instead of the ratio", edit("min(ratios, key=error)", "min(map(error, ratios))"),
            cause="This is the smallest error, and the question is which ratio gives it.",
            cure="Return the ratio.", see="a number that is none of the ratios"),
    ),
)
