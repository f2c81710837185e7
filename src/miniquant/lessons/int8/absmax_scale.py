"""The width of one step."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.by_hand import nearest32
from ..shared.scalars import number32


def absmax_scale(w):
    """The width of one step of an 8-bit grid: absmax / 127.

    w: float32, any shape, also () (one number, no axes), not empty, finite
    ->   np.float32, one number for all of w (a float32 array of shape ()
         will do)

    absmax is the largest absolute value in w. If all weights are 0, the
    scale is 0. Every bit counts: absmax × (1 / 127) may differ in the last.
    """
    return np.abs(w).max() / np.float32(127)


def oracle(w):
    """The largest distance from zero, found one number at a time."""
    farthest = 0.0
    for x in w.ravel().tolist():
        farthest = x if x > farthest else -x if -x > farthest else farthest
    return np.float32(nearest32(farthest / 127))


def cases(random):
    """The farthest weight positive, negative or absent; a matrix, three axes, one number; small and random weights."""
    made = [
        [1.0, 2.0, 127.0],
        [-127.0, 3.0, 64.0],
        [-254.0, -2.0],
        [-3.0, -5.0],  # the scale is no round number
        [0.0, 0.0],
        [1e-9, -1e-9],  # small, and not 0
        [0.5, -4.5],
        [1e-25, -3e-25],  # their squares are 0 in float32
        [2e25, -1e25],  # and these infinite
        [1e-40, -3e-40],  # below the smallest number with all its digits
        [3.4e38, -1.0],  # near the largest one
        [[1, -2], [3, -381], [5, 4]],  # the farthest weight in a row between others
        [[[1.0, 2.0], [3.0, -6.35]]],
        -254.0,
        np.array([190, -100]) / 2**24,
        random.normal(size=(4, 6)),
        random.normal(0, 0.02, (3, 8)),
    ]
    return [(np.array(w, np.float32),) for w in made]


EXERCISE = Exercise(
    goal="Find the width of one step, so that the weight farthest from zero gets the integer 127 or -127.",
    reference=absmax_scale, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up", observe=number32,
    hints=(
        "The weight that is farthest from zero may be negative. So compare distances from zero, not the weights themselves.",
        "`np.abs` gives the absolute values of a whole array, and an array's method `max` gives its largest number. numpy keeps "
        "float32 if you divide a float32 by a Python integer.",
    ),
    why="this one number is the step of the grid: every weight becomes a whole number of these steps.",
    mistakes=(
        Mistake("signed maximum", edit("np.abs(w).max()", "w.max()"),
            cause="The scale comes from the largest weight. A negative weight may be farther from zero.",
            cure="Take `np.abs(w)` first, then the maximum.",
            see="a scale that is too small, or negative, when the weight farthest from zero is negative"),
        Mistake("absolute value taken too late", edit("np.abs(w).max()", "abs(w.max())"),
            cause="The scale comes from the absolute value of the largest weight. A negative weight may be farther from zero.",
            cure="Exchange the two: `np.abs(w).max()`.",
            see="a positive scale that is too small when the weight farthest from zero is negative"),
        Mistake("Python's max on an array", edit("np.abs(w).max()", "max(abs(w))"),
            cause="Two rows of several numbers give an error, as from Python's own `max`: numpy does not say which of two such rows is larger.",
            cure="Use the array's method, `np.abs(w).max()`. It looks at every number.",
            see="a ValueError about the truth value of an array"),
        Mistake("divided by 128", edit("127", "128"),
            cause="An int8 reaches from -128 to 127. With absmax / 128, a weight of +absmax would get 128, which an int8 does not have.",
            cure="Divide by 127, the number of steps on each side of zero.",
            see="a scale that is a little too small: 1.984375 where 2.0 is expected"),
        Mistake("divided by 255", edit("127", "255"),
            cause="255 is the number of integers from -127 to 127. From zero to the last one there are 127 steps.",
            cure="Divide by 127.", see="a scale about half of what is expected"),
        Mistake("from minimum to maximum", edit("np.abs(w).max()", "(w.max() - w.min())").edit("127", "255"),
            cause="(max - min) / 255 is the scale of asymmetric quantization, which also stores a zero point.",
            cure="Symmetric quantization keeps zero in the middle: use the largest absolute value and 127.",
            see="a scale that depends on both the smallest and the largest weight"),
        Mistake("upside down", edit("np.abs(w).max() / np.float32(127)", "np.float32(127) / np.abs(w).max()"),
            cause="127 / absmax is the number of steps in one unit. That is the inverse of the scale.",
            cure="Divide absmax by 127, not 127 by absmax.", see="a large scale for small weights, or `inf` for zeros"),
        Mistake("one scale a column", edit("max()", "max(axis=0)"),
            cause="The maximum is taken along the first axis only, as `axis=0` gives it. Here the whole tensor has one scale.",
            cure="Leave `axis` out, so that `max()` returns one number.", see="an array where a number is expected"),
        Mistake("never zero",
            edit("/ np.float32(127)", "/ np.float32(127) + np.float32(1e-12)"),
            cause="The scale of a tensor of zeros is a small number, and it must be 0.",
            cure="Return absmax / 127, also where that is 0.",
            see="a tiny number where 0 is expected"),
        Mistake("mean instead of maximum",
            edit("max()", "mean()"),
            cause="The mean distance from zero is shorter than the largest one, unless all are equal. Weights far beyond it would need integers beyond 127.",
            cure="Take the maximum: `np.abs(w).max()`.",
            see="a scale that is too small for every tensor with different weights"),
        Mistake("the difference of both ends",
            body("return (w.max() - w.min()) / np.float32(127)"),
            cause="max - min is the length of both sides together when the weights have both signs. One side is enough.",
            cure="Use the largest absolute value.",
            see="a scale up to twice as large as expected"),
    ),
)
