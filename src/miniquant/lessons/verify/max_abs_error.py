"""One number for two arrays."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared import observed
from .toys import NAN, array, as_tensors


def max_abs_error(expected, found):
    """The largest absolute difference between two arrays.

    expected, found: two NumPy arrays or two torch tensors of one shape,
        also () and empty ones, without gradients; integers or floats of a
        type that NumPy has, so no bfloat16
    ->   a float: both sides are made float64 first; 0.0 if they are empty,
         NaN if any of the differences is NaN, as inf - inf is
    """
    a, b = np.asarray(expected, np.float64), np.asarray(found, np.float64)
    return float(np.abs(a - b).max(initial=0))


def oracle(expected, found):
    """One pair at a time; a NaN ends it."""
    worst = 0.0
    for a, b in zip(expected.ravel().tolist(), found.ravel().tolist()):
        gap = abs(float(a) - float(b))
        if gap != gap:
            return NAN
        worst = gap if gap > worst else worst
    return worst


def cases(random):
    """Arrays that can be compared by eye, NaN on each side, small types, odd shapes, torch, then random eighths."""
    eighths = [(random.integers(-80, 80, (4, 8)) / 8).astype(np.float32) for _ in range(2)]
    cube = (random.integers(-80, 80, (2, 3, 4)) / 8).astype(np.float32)
    return [
        (array(1, 2, 3, 4), array(1, 2, 5, 4)),
        (array(4, 1), array(1, 2)),
        (array(0, -0.5), array(0, 0)),
        (array(0, 0), array(0, 2.0**-30)),
        (array([1, 2]), array([3, 6])),
        (array(1000, 1), array(1000.0009765625, 1)),  # a small part of a large number
        (array(0, 1), array(2.0**-22, 1)),
        (array(1, NAN), array(1, NAN)),
        (array([1, 5], [1, NAN]), array([1, 2], [1, 2])),  # NaN in the second row
        (array(1, 2), array(NAN, 4)),
        (array([1, 2], [3, 4]), array([1, 2], [3, 4])),
        (np.array([100, 0], np.int8), np.array([-100, 1], np.int8)),
        (np.array([3, 200], np.uint8), np.array([5, 200], np.uint8)),
        (np.array([2048], np.float16), np.array([0.5], np.float16)),
        (array(2**24, 1), array(0.5, 1)),
        (array(1, float("inf")), array(1, 4)),
        (array(1, float("inf")), array(2, float("inf"))),
        (array(float("-inf")), array(float("-inf"))),
        (np.array([2**62, 1]), np.array([-(2**62), 3])),  # int64: the difference does not fit
        (np.array([3, 2**53], np.uint64), np.array([5, 2**53 + 3], np.uint64)),  # as float64 they differ by 4
        (np.array([1 - 2.0**-40, 3.0]), np.array([1 + 2.0**-40, 3.0])),
        (array([1], [5], [2], [3]), array([1], [2], [2], [3])),
        (np.array(2.5, np.float32), np.array(-1.0, np.float32)),
        (np.zeros((2, 0), np.float32), np.zeros((2, 0), np.float32)),
        *as_tensors(
            (np.array([100, -3], np.int8), np.array([-100, 4], np.int8)),
            (array(2**24, 1), array(0.5, 1)),
            (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)),
        ),
        (np.array([-3e200, 2.0]), np.array([3e200, 1.0])),  # the square is too large for float64
        (array(5, -1, -6), array(-4, 0, -6)),
        (array([0, 1, 2], [3, 4, 9]), array([0, 1, -2], [3, 7, 4])),
        (cube, cube[::-1].copy()),
        (eighths[0], eighths[1]),
    ]


def quantities(expected, found):
    """What makes a case a special one."""
    a, b = np.asarray(expected, np.float64), np.asarray(found, np.float64)
    with np.errstate(all="ignore"):
        gaps = np.abs(a - b)
        largest = float((b - a).flat[int(gaps.argmax())]) if gaps.size else 0.0
    return {
        "a difference is NaN": bool(np.isnan(gaps).any()),
        "a difference is infinite": bool(np.isinf(gaps).any()),
        "a difference is NaN or infinite": not np.isfinite(gaps).all(),
        "the arrays are empty": not gaps.size,
        "the arrays are equal as float64": bool((a == b).all()),
        "the arrays have no axes": not gaps.ndim,
        "the arrays have more than one axis": gaps.ndim > 1,
        "the arguments are tensors": not isinstance(expected, np.ndarray),
        "two differences or more are not 0": bool((gaps != 0).sum() > 1),
        "`found` is the larger one where the difference is largest (the first place, if several are)": largest > 0,
        "`expected` is the larger one where the difference is largest (the first place, if several are)": largest < 0,
    }


EXERCISE = Exercise(
    goal="Return the largest absolute difference between two arrays, as one float that is NaN if any difference is.",
    reference=max_abs_error, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up",
    observe=observed.quiet_values, quantities=quantities,
    hints=(
        "Compare element by element first, and reduce to one number last; a difference counts whatever its sign.",
        "`np.asarray(x, np.float64)` turns any array or tensor into float64; `.max(initial=0)` also knows what to say of an empty array.",
    ),
    why="one number now stands for a whole tensor, and neither a NaN nor one bad weight in a million can hide in it.",
    mistakes=(
        Mistake("no absolute value", edit("np.abs(a - b).max(initial=0)", "((a - b).max() if a.size else 0.0)"),
            cause="The result is the largest of the differences expected - found with their signs: a negative one counts less than any positive one, however far it is from 0.",
            cure="Take `np.abs` of the differences before you take the maximum.",
            see="zero or a negative number where a weight came back too large"),
        Mistake("absolute value of the maximum", edit("np.abs(a - b).max(initial=0)", "np.abs((a - b).max(initial=-np.inf))"),
            cause="The result is the absolute value of the largest of expected - found (inf if there is none), and a negative one is that only if all are negative.",
            cure="Swap the two: `np.abs(...)` inside, `.max()` outside.",
            see="an answer that is too small whenever the worst difference is negative"),
        Mistake("difference of the maxima", edit("float(np.abs(a - b).max(initial=0))", "float(abs(a.max() - b.max())) if a.size else 0.0"),
            cause="The result is the difference of the two largest values, and these need not stand at the same place.",
            cure="Subtract element by element first, then reduce.",
            see="zero for two arrays that hold the same numbers in another order"),
        Mistake("absolute value of the largest of found - expected",
            edit("return float(np.abs(a - b).max(initial=0))", "return float(abs((b - a).max())) if a.size else 0.0"),
            cause="The result is the absolute value of the largest of the differences found - expected. Where `expected` is larger, the difference is negative, and a negative one is the largest only if all are.",
            cure="Take the absolute values first, and then their maximum.", see="`0.0` where only one value differs, and `found` is the smaller one"),
        Mistake("mean instead of maximum", edit(".max(initial=0)", ".mean() if a.size else 0.0"),
            cause="The result is the mean of the absolute differences, which spreads one bad weight over all the good ones.",
            cure="Use `.max()`: the limit is for the worst element.", see="an answer that shrinks as the tensor grows"),
        Mistake("sum instead of maximum", edit(".max(initial=0)", ".sum()"),
            cause="The result is the sum of the absolute differences, and the question is for the largest one.",
            cure="Use `.max()`: the limit is for the worst element.", see="an answer that is too large wherever two elements differ"),
        Mistake("length of the difference", edit("np.abs(a - b).max(initial=0)", "np.sqrt(((a - b) ** 2).sum())"),
            cause="The result is the root of the sum of the squares of all differences, the length of a vector (inf where a square is too large for float64).",
            cure="Take the largest of them: `np.abs(...).max()`.",
            see="an answer that grows with the size of the tensor"),
        Mistake("no maximum", edit("float(np.abs(a - b).max(initial=0))", "np.abs(a - b)"),
            cause="The result holds every difference, and the question is for the worst one.",
            cure="Add `.max()`.", see="`the type differs`, with an array on your side"),
        Mistake("NaN ignored", edit("np.abs(a - b).max(initial=0)", "np.nanmax(np.abs(a - b), initial=0)"),
            cause="The result is the largest of the differences that are not NaN, 0 if all are; `>` and `<` with NaN are always False.",
            cure="Use `.max()` of the array: it gives NaN if one element is NaN.", see="a number where `nan` is expected"),
        Mistake("relative error", edit("np.abs(a - b).max(initial=0)", "(np.abs(a - b) / np.abs(a)).max(initial=0)"),
            cause="Each difference counts in the result divided by the size of its expected value: the largest of these quotients is there.",
            cure="The assignment's limits are absolute: leave out the division.",
            see="`inf` or `nan` where the expected value is 0"),
        Mistake("subtracted in the arrays' own type",
            edit("np.asarray(expected, np.float64), np.asarray(found, np.float64)", "np.asarray(expected), np.asarray(found)"),
            cause="The result is what the arrays' own types make of the difference: in int8, 100 - (-100) wraps around to -56.",
            cure="Convert both to float64 before you subtract.", see="`56` where `200.0` is expected"),
        Mistake("computed in float32",
            edit("np.asarray(expected, np.float64), np.asarray(found, np.float64)", "np.asarray(expected, np.float32), np.asarray(found, np.float32)"),
            cause="The result is what float32 makes of the difference: 16777216 - 0.5 does not fit into its 24 bits.",
            cure="Convert both to float64 before you subtract.", see="`16777216.0` where `16777215.5` is expected"),
        Mistake("empty arrays refused", edit(".max(initial=0)", ".max()"),
            cause="The maximum of no elements is an error in NumPy unless `initial` is given, and two empty tensors do agree.",
            cure="Return 0.0 for empty arrays: `.max(initial=0)`, or look at `.size` first.",
            see="`ValueError: zero-size array` where `0.0` is expected"),
    ),
)
