"""The width of one step."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest32


def absmax_scale(w):
    """The width of one step for 8-bit integers.

    w: any shape, float32   ->   a float32 number; -127 and 127 are the last integers
    """
    return np.abs(w).max() / np.float32(127)


def oracle(w):
    """The largest distance from zero, found one number at a time."""
    farthest = 0.0
    for x in w.ravel().tolist():
        farthest = x if x > farthest else -x if -x > farthest else farthest
    return np.float32(nearest32(farthest / 127))


def cases(random):
    """The farthest weight positive, negative or absent; a matrix; three axes; random weights."""
    made = [
        [1.0, 2.0, 127.0],
        [-127.0, 3.0, 64.0],
        [-254.0, -2.0],
        [0.0, 0.0],
        [[1, -2], [3, -381]],
        [[[1.0, 2.0], [3.0, -6.35]]],
        random.normal(size=(4, 6)),
    ]
    return [(np.array(w, np.float32),) for w in made]


EXERCISE = Exercise(
    goal="Find the width of one step, so that the weight farthest from zero lands on the integer 127 or -127.",
    reference=absmax_scale, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up", tolerance=1e-7,
    hints=(
        "The farthest weight from zero may be a negative one, so take absolute values before you take the maximum.",
        "`np.abs(w).max()` is the distance that 127 steps must cover; divide it by 127.",
    ),
    why="this one number decides how fine the grid is: every weight becomes a whole number of these steps.",
    mistakes=(
        Mistake("signed maximum", edit("np.abs(w).max()", "w.max()"),
            cause="You took the largest weight, and a negative weight that lies farther from zero was not seen.",
            cure="Take `np.abs(w)` first, then the maximum.",
            see="a scale that is too small, or negative, when the longest weight is negative"),
        Mistake("absolute value taken too late", edit("np.abs(w).max()", "abs(w.max())"),
            cause="`abs(w.max())` takes the largest weight first, which drops a negative weight that lies farther from zero.",
            cure="Turn the two around: `np.abs(w).max()`.",
            see="a positive scale that is too small when the longest weight is negative"),
        Mistake("Python's max on an array", edit("np.abs(w).max()", "max(abs(w))"),
            cause="Python's own `max` compares whole rows, and numpy does not say whether one row is larger than another.",
            cure="Use the array's method, `np.abs(w).max()`, which looks at every number.",
            see="a ValueError about the truth value of an array"),
        Mistake("divided by 128", edit("127", "128"),
            cause="An int8 reaches down to -128 but up to 127 only, so a positive absmax divided by 128 steps lands on 128, which does not exist.",
            cure="Divide by 127, the number of steps on either side of zero.",
            see="a scale that is a little too small: 1.984375 where 2.0 is expected"),
        Mistake("divided by 255", edit("127", "255"),
            cause="255 is the number of steps on both sides of zero together, and absmax is the length of one side.",
            cure="Divide by 127.", see="a scale about half of what is expected"),
        Mistake("from minimum to maximum", edit("np.abs(w).max()", "(w.max() - w.min())").edit("127", "255"),
            cause="(max - min) / 255 is the scale of asymmetric quantization, which also stores a zero point.",
            cure="Symmetric quantization keeps zero in the middle: use the largest absolute value and 127.",
            see="a scale that depends on both the smallest and the largest weight"),
        Mistake("upside down", edit("np.abs(w).max() / np.float32(127)", "np.float32(127) / np.abs(w).max()"),
            cause="127 / absmax is the number of steps in a unit, the inverse of the scale.",
            cure="Divide absmax by 127, not 127 by absmax.", see="a large scale for small weights, or `inf` for zeros"),
        Mistake("one scale a column", edit("max()", "max(axis=0)"),
            cause="`axis=0` keeps a maximum for each column, and this tensor has one scale for all of it.",
            cure="Leave `axis` out, so that `max()` returns one number.", see="an array where a number is expected"),
    ),
)
