"""The exercise of lab 14 on SmoothQuant: the difficulty shared between activations and weights."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...calibrate.smoothquant import smooth_scale
from ...lab.spec import Case, Exercise, Mistake

F32 = np.float32


def smooth_scales(x: np.ndarray, w: np.ndarray, strength: float) -> np.ndarray:
    """The reference: x (tokens, in), w (out, in), both float32 -> (in,) float32, what each channel is divided by."""
    return smooth_scale(np.abs(x).max(axis=0), w, strength)


def _smooth_oracle(x: np.ndarray, w: np.ndarray, strength: float) -> np.ndarray:
    """Channel by channel."""
    found = []
    for c in range(x.shape[1]):
        top = max(abs(row[c]) for row in x.tolist())
        column = max(abs(row[c]) for row in w.tolist())
        found.append(top**strength / column ** (1 - strength))
    return np.array(found, F32)


def _smooth_cases(random: np.random.Generator) -> list[Case]:
    x, w = np.array([[16, -1], [4, 9]], F32), np.array([[4, 1], [-1, 0.25], [2, -0.5]], F32)
    large = random.normal(0, [1, 30, 0.5, 2], (20, 4)).astype(F32)
    square = random.normal(0, 1, (4, 4)).astype(F32)
    return [(x, w, 0.5), (x, w, 1.0), (x, w, 0.25), (-x, -w, 0.5), (large, square, 0.5), (large, square, 0.8)]


def _smooth(x, w, strength, of_x=lambda x: np.abs(x).max(axis=0), of_w=lambda w: np.abs(w).max(axis=0), turn=1):
    return ((of_x(x) ** strength / of_w(w) ** (1 - strength)) ** turn).astype(F32)


SMOOTH_SCALES = Exercise(
    name="smooth_scales",
    lab="14",
    goal="Compute what SmoothQuant divides each channel by: max(abs(x)) to the strength over max(abs(w)) to the rest.",
    minutes=5,
    difficulty="core",
    reference=smooth_scales,
    oracle=_smooth_oracle,
    cases=_smooth_cases,
    tolerance=1e-4,
    hints=(
        "A channel is a column of x and a column of w: both maxima run along axis 0.",
        "`np.abs(x).max(axis=0) ** strength / np.abs(w).max(axis=0) ** (1 - strength)`.",
    ),
    why="with strength 0.5 activations and weights end up with the same range in every channel.",
    mistakes=(
        Mistake(
            "the exponents exchanged",
            lambda x, w, strength: _smooth(x, w, 1 - strength),
            "The strength is how much of the difficulty goes to the weights; it belongs to the activations' maximum.",
            "Raise the maximum of x to `strength` and that of w to `1 - strength`.",
            "right for strength 0.5 alone",
        ),
        Mistake(
            "multiplied instead of divided",
            lambda x, w, strength: _smooth(x, w, strength, of_w=lambda w: 1 / np.abs(w).max(axis=0)),
            "A column of large weights has no room for more, so it must get a smaller scale.",
            "Divide by the weights' part.",
            "scales too large where the weights are large",
        ),
        Mistake(
            "rows of w",
            partial(_smooth, of_w=lambda w: np.abs(w).max(axis=1)),
            "`axis=1` takes the maximum of each output; a channel is a column.",
            "Use `axis=0` for both.",
            "other numbers, or an error about shapes",
        ),
        Mistake(
            "no absolute value",
            partial(_smooth, of_x=lambda x: np.maximum(x.max(axis=0), F32(1e-5))),
            "The largest number of a channel may be negative.",
            "Take `np.abs(x)` first.",
            "scales too small where the largest activation is negative",
        ),
        Mistake(
            "means instead of maxima",
            partial(_smooth, of_x=lambda x: np.abs(x).mean(axis=0)),
            "That is what AWQ looks at; the scale of eight bits is set by the largest activation.",
            "Take the maximum.",
            "scales that are too small",
        ),
        Mistake(
            "the inverse",
            partial(_smooth, turn=-1),
            "That is what the weights are divided by, or the activations multiplied by.",
            "Turn it over.",
            "one over what is expected",
        ),
        Mistake(
            "the weights left out",
            partial(_smooth, of_w=lambda w: np.ones(w.shape[1], F32)),
            "Only the activations were looked at.",
            "Divide by the maximum of the column of w to the power of 1 - strength.",
            "right for strength 1 alone",
        ),
    ),
)
