"""One number for two arrays."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared import observed
from .toys import NAN, array


def max_abs_error(expected, found):
    """The largest absolute difference between two arrays.

    expected, found: the same shape, any number type   ->   a float; NaN if any of the differences is NaN
    """
    a, b = np.asarray(expected, np.float64), np.asarray(found, np.float64)
    return float(np.abs(a - b).max())


def oracle(expected, found):
    """One pair at a time; a NaN ends it."""
    worst = 0.0
    for a, b in zip(expected.ravel().tolist(), found.ravel().tolist()):
        gap = float(a - b if a > b else b - a)
        if gap != gap:
            return NAN
        worst = gap if gap > worst else worst
    return worst


def cases(random):
    """Arrays that can be compared by eye, NaN on each side, int8, then random eighths."""
    eighths = [(random.integers(-80, 80, (4, 8)) / 8).astype(np.float32) for _ in range(2)]
    return [
        (array(1, 2, 3, 4), array(1, 2, 5, 4)),
        (array(4, 1), array(1, 2)),
        (array(0, 0), array(0, -0.5)),
        (array(1, 2), array(3, 6)),
        (array(1, NAN), array(1, 2)),
        (array(1, 2), array(NAN, 4)),
        (array([1, 2], [3, 4]), array([1, 2], [3, 4])),
        (np.array([100, 0], np.int8), np.array([-100, 1], np.int8)),
        (eighths[0], eighths[1]),
    ]


EXERCISE = Exercise(
    goal="Return the largest absolute difference between two arrays, as one float that is NaN if any difference is.",
    reference=max_abs_error, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up", tolerance=1e-9,
    observe=observed.values,
    hints=(
        "Three steps, in this order: subtract, take the absolute value of every element, take the maximum.",
        "`np.asarray(x, np.float64)` on both sides first: integers then cannot overflow, and tensors become arrays.",
    ),
    why="one number now stands for a whole tensor, and neither a NaN nor one bad weight in a million can hide in it.",
    mistakes=(
        Mistake("no absolute value", edit("np.abs(a - b).max()", "(a - b).max()"),
            cause="A negative difference, however large, never is the maximum.",
            cure="Take `np.abs` of the differences before you take the maximum.",
            see="zero or a negative number where a weight came back too large"),
        Mistake("absolute value of the maximum", edit("np.abs(a - b).max()", "np.abs((a - b).max())"),
            cause="The maximum was taken over signed differences, so the most negative one was lost before `abs` saw it.",
            cure="Swap the two: `np.abs(...)` inside, `.max()` outside.",
            see="an answer that is too small whenever the worst difference is negative"),
        Mistake("difference of the maxima", edit("np.abs(a - b).max()", "np.abs(a.max() - b.max())"),
            cause="Each array was reduced to its own largest value, and these two need not stand at the same place.",
            cure="Subtract element by element first, then reduce.",
            see="zero for two arrays that hold the same numbers in another order"),
        Mistake("mean instead of maximum", edit(".max()", ".mean()"),
            cause="A mean spreads one bad weight over all the good ones.",
            cure="Use `.max()`: the limit is for the worst element.", see="an answer that shrinks as the tensor grows"),
        Mistake("length of the difference", edit("np.abs(a - b).max()", "np.sqrt(((a - b) ** 2).sum())"),
            cause="All the differences were squared and added up, as for the length of a vector.",
            cure="Take the largest of them: `np.abs(...).max()`.",
            see="an answer that grows with the size of the tensor"),
        Mistake("no maximum", edit("float(np.abs(a - b).max())", "np.abs(a - b)"),
            cause="Every difference was returned, and the question was for the worst one.",
            cure="Add `.max()`.", see="`the type differs`, with an array on your side"),
        Mistake("NaN ignored", edit("np.abs(a - b).max()", "np.nanmax(np.abs(a - b))"),
            cause="`np.nanmax`, or a loop with `if gap > worst`, steps over NaN, because NaN is not greater than anything.",
            cure="Use `.max()` of the array, which hands a NaN on.", see="a number where `nan` is expected"),
        Mistake("relative error", edit("np.abs(a - b).max()", "(np.abs(a - b) / np.abs(a)).max()"),
            cause="The difference was divided by the expected value.",
            cure="The assignment's limits are absolute: leave out the division.",
            see="`inf` or `nan` where the expected value is 0"),
        Mistake("subtracted in the arrays' own type",
            edit("np.asarray(expected, np.float64), np.asarray(found, np.float64)", "expected, found"),
            cause="Two int8 numbers were subtracted as int8, and 100 - (-100) does not fit: it wraps around to -56.",
            cure="Convert both to float64 before you subtract.", see="`56` where `200.0` is expected"),
    ),
)
