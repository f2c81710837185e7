"""The exercises of lab 14 on AWQ: how large activations are, the scales that follow, and where to clip a group."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ...calibrate.awq import channel_scale
from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import nearest16, nearest32

F32 = np.float32

# ---- activation_size -------------------------------------------------------------------------------------------------


def activation_size(x: np.ndarray) -> np.ndarray:
    """The reference: x (tokens, channels) float32 -> (channels,) float32."""
    return np.abs(x).mean(axis=0)


def _size_oracle(x: np.ndarray) -> np.ndarray:
    """One channel after another, one number at a time."""
    rows = x.tolist()
    return np.array([math.fsum(abs(row[c]) for row in rows) / len(rows) for c in range(len(rows[0]))], F32)


def _size_cases(random: np.random.Generator) -> list[Case]:
    return [
        (np.array([[1, -10], [-3, 30]], F32),),
        (np.array([[1, 2, 3], [-1, -2, -3], [4, 8, 12], [0, 0, 0]], F32),),
        (np.array([[0.5, -100, 2, 0], [1.5, 50, -2, 0]], F32),),
        (random.normal(0, [1, 5, 0.1, 2, 1], (40, 5)).astype(F32),),
    ]


ACTIVATION_SIZE = Exercise(
    name="activation_size",
    lab="14",
    goal="Measure how large the numbers of each input channel are: the mean of their absolute values over all tokens.",
    minutes=3,
    difficulty="warm-up",
    reference=activation_size,
    oracle=_size_oracle,
    cases=_size_cases,
    tolerance=1e-4,
    hints=(
        "A row is a token and a column is a channel: the mean runs over the tokens, and one number a channel is left.",
        "`np.abs(x)` first, then `.mean(axis=0)`.",
    ),
    why="a column of weights matters as much as the activations that it is multiplied by, and now you know those.",
    mistakes=(
        Mistake(
            "no absolute value",
            lambda x: x.mean(axis=0),
            "Positive and negative activations cancel, and a channel of ±30 looks like nothing.",
            "Take `np.abs(x)` before the mean.",
            "numbers near 0, some of them negative",
        ),
        Mistake(
            "absolute value too late",
            lambda x: np.abs(x.mean(axis=0)),
            "The mean was taken first, so positive and negative activations have cancelled already.",
            "Take `np.abs(x)` before the mean.",
            "positive numbers that are too small",
        ),
        Mistake(
            "one number a token",
            lambda x: np.abs(x).mean(axis=1),
            "`axis=1` averages the channels of each token.",
            "Average over the tokens: `axis=0`.",
            "as many numbers as there are tokens",
        ),
        Mistake(
            "the largest instead of the mean",
            lambda x: np.abs(x).max(axis=0),
            "That is what SmoothQuant looks at; for AWQ a single large number does not make a channel important.",
            "Take the mean.",
            "numbers that are too large, each a number of x",
        ),
        Mistake(
            "root mean square",
            lambda x: np.sqrt((x**2).mean(axis=0)),
            "Squares give a few large numbers more say than AWQ does.",
            "Take the mean of the absolute values.",
            "numbers somewhat too large",
        ),
        Mistake(
            "a sum",
            lambda x: np.abs(x).sum(axis=0),
            "The sum grows with the amount of text.",
            "Divide by the number of tokens: `.mean`.",
            "numbers too large by the number of tokens",
        ),
    ),
)

# ---- awq_scales ------------------------------------------------------------------------------------------------------


def awq_scales(size: np.ndarray, alpha: float) -> np.ndarray:
    """The reference: size (channels,) float32, all above 0 -> (channels,) float32."""
    return channel_scale(size, alpha)


def _scales_oracle(size: np.ndarray, alpha: float) -> np.ndarray:
    """By logarithms: the middle between the largest and the smallest becomes 0."""
    logs = [alpha * math.log(x) for x in size.tolist()]
    middle = (max(logs) + min(logs)) / 2
    return np.array([math.exp(x - middle) for x in logs], F32)


def _scales_cases(random: np.random.Generator) -> list[Case]:
    return [
        (np.array([4, 1], F32), 1.0),
        (np.array([16, 4, 1], F32), 0.5),
        (np.array([9, 3, 27, 81], F32), 0.25),
        (np.array([5, 2, 7], F32), 0.0),
        (random.uniform(0.2, 3, 8).astype(F32), 0.7),
    ]


def _normalised(scale: np.ndarray) -> np.ndarray:
    return (scale / np.sqrt(scale.max() * scale.min())).astype(F32)


AWQ_SCALES = Exercise(
    name="awq_scales",
    lab="14",
    goal="Turn the sizes into scales: to the power of alpha, then divided so that the largest times the smallest is 1.",
    minutes=4,
    difficulty="core",
    reference=awq_scales,
    oracle=_scales_oracle,
    cases=_scales_cases,
    tolerance=1e-5,
    hints=(
        "With alpha 0 every channel gets 1 and nothing changes; with alpha 1 the sizes themselves decide.",
        "`s = size**alpha`, then `s / np.sqrt(s.max() * s.min())`: normalise after the power.",
    ),
    why="one number, alpha, says how far to go, so that a search over a few dozen values is enough.",
    mistakes=(
        Mistake(
            "not normalised",
            lambda size, alpha: (size**alpha).astype(F32),
            "The scales grow with the activations, and the step of every group with them.",
            "Divide by `np.sqrt(s.max() * s.min())`.",
            "scales in the right proportion, all too large or too small",
        ),
        Mistake(
            "divided by the largest",
            lambda size, alpha: (size**alpha / (size**alpha).max()).astype(F32),
            "Now no scale is above 1: no column is made larger, and most are made smaller.",
            "Divide by the root of the largest times the smallest.",
            "a largest scale of exactly 1",
        ),
        Mistake(
            "divided by the mean",
            lambda size, alpha: (size**alpha / (size**alpha).mean()).astype(F32),
            "The mean hangs on the few large channels; AWQ puts the middle of the range at 1.",
            "Divide by the root of the largest times the smallest.",
            "scales in the right proportion",
        ),
        Mistake(
            "alpha left out",
            lambda size, alpha: _normalised(size),
            "The sizes themselves became the scales, whatever alpha is.",
            "Raise them to the power of alpha first.",
            "right for alpha 1 alone",
        ),
        Mistake(
            "multiplied by alpha",
            lambda size, alpha: _normalised(alpha * size) if alpha else np.ones_like(size),
            "A factor disappears in the normalisation; alpha is an exponent.",
            "Write `size**alpha`.",
            "right for alpha 1 and 0 alone",
        ),
        Mistake(
            "one minus alpha",
            lambda size, alpha: _normalised(size ** (1 - alpha)),
            "The exponent runs backwards: 1 - alpha belongs to the weights in SmoothQuant.",
            "Write `size**alpha`.",
            "right for alpha 0.5 alone",
        ),
        Mistake(
            "the other way round",
            lambda size, alpha: _normalised(size ** (-alpha)),
            "Channels with large activations got the small scales, so their columns are rounded more coarsely.",
            "Give large activations large scales.",
            "one over what is expected",
        ),
        Mistake(
            "no root",
            lambda size, alpha: (size**alpha / ((size**alpha).max() * (size**alpha).min())).astype(F32),
            "Dividing by the product makes the largest times the smallest one over that product.",
            "Take the square root of the product.",
            "scales in the right proportion",
        ),
    ),
)

# ---- search_clip -----------------------------------------------------------------------------------------------------

QMAX = 7


def search_clip(w: np.ndarray, hessian: np.ndarray, ratios: list[float]) -> float:
    """The reference: w (n,) float32, hessian (n, n), ratios from 1 down -> the ratio with the least output error."""
    errors = [_moved(w, hessian, ratio) for ratio in ratios]
    return ratios[int(np.argmin(errors))]


def _rounded(w: np.ndarray, ratio: float, qmax: int = QMAX, clipped: bool = True) -> np.ndarray:
    scale = (np.abs(w).max() * F32(ratio) / F32(qmax)).astype(np.float16).astype(F32)
    q = np.rint(w / scale)
    return scale * (q.clip(-QMAX, QMAX) if clipped else q)


def _moved(w: np.ndarray, hessian: np.ndarray, ratio: float, **how) -> float:
    change = _rounded(w, ratio, **how).astype(np.float64) - w
    return float(change @ hessian @ change)


def _clip_oracle(w: np.ndarray, hessian: np.ndarray, ratios: list[float]) -> float:
    """Sums written out, weight by weight; the first of the best."""
    weights, rows = w.tolist(), hessian.tolist()
    best, least = ratios[0], math.inf
    for ratio in ratios:
        scale = nearest16(nearest32(nearest32(max(abs(x) for x in weights) * nearest32(ratio)) / QMAX))
        back = [scale * max(-QMAX, min(QMAX, round(nearest32(x / scale)))) for x in weights]
        change = [b - x for b, x in zip(back, weights)]
        error = math.fsum(a * h * b for a, row in zip(change, rows) for h, b in zip(row, change))
        if error < least:
            best, least = ratio, error
    return best


RATIOS = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]


def _clip_cases(random: np.random.Generator) -> list[Case]:
    ends = np.array([8, 1.3, -0.6, 0.4, 0.9, -1.7, 0.2, 1.1], F32)  # one weight far out
    careless, careful = np.diag([1e-3, *[1.0] * 7]), np.diag([50.0, *[1.0] * 7])
    cases = [(ends, careless, RATIOS), (ends, np.eye(8), RATIOS), (ends, careful, RATIOS)]
    for n in (8,) * 8 + (48,) * 4:
        x = random.normal(size=(60, n)) * random.choice([0.3, 1, 4], n) + random.normal(size=(60, 1))
        cases.append((random.standard_t(3, n).astype(F32), x.T @ x / 60, RATIOS))
    return cases


def _best(error, w: np.ndarray, hessian: np.ndarray, ratios: list[float], pick=np.argmin) -> float:
    return ratios[int(pick([error(w, hessian, ratio) for ratio in ratios]))]


def _against_clipped(w: np.ndarray, hessian: np.ndarray, ratio: float) -> float:
    top = np.abs(w).max() * F32(ratio)
    change = _rounded(w, ratio).astype(np.float64) - w.clip(-top, top)
    return float(change @ hessian @ change)


SEARCH_CLIP = Exercise(
    name="search_clip",
    lab="14",
    goal="Find how much of a group's range to keep, so that rounding it to four bits moves the output least.",
    minutes=8,
    difficulty="core",
    reference=search_clip,
    oracle=_clip_oracle,
    cases=_clip_cases,
    tolerance=1e-9,
    hints=(
        "For each ratio: the scale is float16(absmax × ratio / 7), the integers are clipped to -7 … 7, and the output "
        "moves by `change @ hessian @ change` with change = scale × q - w.",
        "Measure the change against the weights as they were, clipped ones included: what clipping takes away counts. "
        "`min(ratios, key=error)` finds the first of the best.",
    ),
    why="a single weight no longer decides how coarsely its whole group is rounded.",
    mistakes=(
        Mistake(
            "without the Hessian",
            partial(_best, lambda w, h, r: _moved(w, np.eye(len(w)), r)),
            "All weights count the same, though some meet large activations and some hardly any.",
            "Weigh the change with the Hessian: `change @ hessian @ change`.",
            "the best ratio for the weights, not for the output",
        ),
        Mistake(
            "only the diagonal",
            partial(_best, lambda w, h, r: _moved(w, np.diag(np.diag(h)), r)),
            "Errors of two columns that move together add up or cancel, and the diagonal knows nothing of it.",
            "Use the whole Hessian.",
            "right where the Hessian is diagonal",
        ),
        Mistake(
            "measured against the clipped weights",
            partial(_best, _against_clipped),
            "The change was measured from the clipped weights, so that clipping itself seems to cost nothing.",
            "Compare with the weights as they were.",
            "a small ratio nearly always",
        ),
        Mistake(
            "the integers not clipped",
            partial(_best, partial(_moved, clipped=False)),
            "An integer of 9 was allowed, and four bits hold -7 to 7 here.",
            "Add `.clip(-7, 7)` behind `np.rint`.",
            "0.5 nearly always",
        ),
        Mistake(
            "the worst",
            partial(_best, _moved, pick=np.argmax),
            "The ratio with the largest error was returned.",
            "Take the smallest error.",
            "a ratio that nobody wants",
        ),
        Mistake(
            "divided by 8",
            partial(_best, partial(_moved, qmax=8)),
            "The scale of 4 bits from -7 to 7 is absmax / 7; with 8 even ratio 1 clips.",
            "Divide by 7.",
            "a ratio one step too large, here and there",
        ),
        Mistake(
            "never clipped",
            lambda w, hessian, ratios: ratios[0],
            "The whole range was kept without a search.",
            "Compute the error for each ratio.",
            "1.0 always",
        ),
        Mistake(
            "the error instead of the ratio",
            lambda w, hessian, ratios: min(_moved(w, hessian, ratio) for ratio in ratios),
            "The smallest error was returned, and the question is which ratio gives it.",
            "Return the ratio: `min(ratios, key=error)`.",
            "a number that is none of the ratios",
        ),
    ),
)
