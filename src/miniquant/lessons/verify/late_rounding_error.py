"""What a scale costs that is rounded too late."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest16
from .toys import array


def late_rounding_error(values, scale):
    """The largest difference between values * scale and values * (scale as the file stores it, in float16).

    values: (out, in) int8; scale: (out,) float32, one for each row   ->   a float, computed in float64
    """
    q = values.astype(np.float64)
    exact = scale.astype(np.float64)[:, None]
    stored = scale.astype(np.float16).astype(np.float64)[:, None]
    return float(np.abs(q * exact - q * stored).max())


def oracle(values, scale):
    """One weight at a time, the scale rounded to float16 by hand."""
    worst = 0.0
    for row, exact in zip(values.tolist(), scale.tolist()):
        (as_float32,) = struct.unpack("<f", struct.pack("<f", exact))
        for value in row:
            worst = max(worst, abs(value * as_float32 - value * nearest16(as_float32)))
    return worst


def cases(random):
    """Scales near 1e-3, as trained weights have them; the last row's worst error is on a negative weight."""
    square = random.integers(-127, 128, (8, 8)).astype(np.int8)
    wide = random.integers(-127, 128, (4, 16)).astype(np.int8)
    return [
        (np.array([[1, 127]], np.int8), array(1e-3)),
        (np.array([[-127, 5]], np.int8), array(1.1e-3)),
        (np.array([[-127, 5]], np.int8), array(1e-3)),
        (np.array([[3, 1], [2, 127]], np.int8), array(1.7e-3, 0.6e-3)),
        (np.array([[64, 127]], np.int8), array(2.0**-10)),
        (square, random.uniform(2e-4, 1.5e-3, 8).astype(np.float32)),
        (wide, random.uniform(2e-4, 1.5e-3, 4).astype(np.float32)),
    ]


EXERCISE = Exercise(
    goal="Measure what goes wrong if the model computes with the float32 scale and the file stores it as float16.",
    reference=late_rounding_error, oracle=oracle, cases=cases, minutes=8, difficulty="stretch", tolerance=1e-8,
    hints=(
        "Compute the weights twice from the same integers: once with `scale`, once with `scale` rounded to float16.",
        "`scale.astype(np.float16).astype(np.float64)[:, None]` is what the file gives back, as a column, one number a row; multiply `values.astype(np.float64)` by it, and do the same with the unrounded scale.",
    ),
    why="this is the whole gap between 'verified to the bit' and 'fails both limits', and two lines in order close it.",
    mistakes=(
        Mistake("both sides rounded",
            edit("exact = scale.astype(np.float64)", "exact = scale.astype(np.float16).astype(np.float64)"),
            cause="With the rounded scale on both sides there is no error: that is the cure, not the trap.",
            cure="Use the float32 scale on one side and the float16 one on the other.", see="`0.0` everywhere"),
        Mistake("the weights rounded to float16", edit("q * stored", "(q * exact).astype(np.float16)"),
            cause="The products were rounded, but the file stores integers and a rounded scale.",
            cure="Round `scale` to float16 and multiply afterwards.", see="errors of the right size with other digits"),
        Mistake("the product in float16", edit("scale.astype(np.float16).astype(np.float64)[:, None]", "scale.astype(np.float16)[:, None]").edit(
                "q * stored", "values * stored"
            ),
            cause="An int8 array times a float16 array is float16 again in NumPy, so every product was rounded once more.",
            cure="Widen the rounded scale with `.astype(np.float64)` before you multiply.",
            see="errors up to twice as large as expected"),
        Mistake("no absolute value", edit("np.abs(q * exact - q * stored).max()", "(q * exact - q * stored).max()"),
            cause="Where the stored scale is too large, the differences of positive weights are negative.",
            cure="Take `np.abs` of the differences before you take the maximum.",
            see="an answer that is too small on some cases"),
        Mistake("relative error", edit("np.abs(q * exact - q * stored).max()", "np.abs(1 - stored / exact).max()"),
            cause="This is the error as a part of each weight, which is at most about 2^-11 whatever the weights are.",
            cure="Leave out the division: the limit is absolute.",
            see="a number near `1e-4`, whatever the integers are"),
        Mistake("the error of the scale alone", edit("q * exact - q * stored", "exact - stored"),
            cause="A scale that is off by a little is multiplied by integers up to 127.",
            cure="Compare the weights, `values * scale`, not the scales.",
            see="an answer that is about a hundred times too small"),
        Mistake("127 assumed in every row",
            edit("np.abs(q * exact - q * stored).max()", "127 * np.abs(exact - stored).max()"),
            cause="The error of the scale was multiplied by 127, and the row with the worst scale need not hold such an integer.",
            cure="Multiply by the integers that are there: compare `values * scale` on both sides.",
            see="the right answer for some cases, and one that is too large for the others"),
        Mistake("the bound instead of the error",
            edit("np.abs(q * exact - q * stored).max()", "np.abs(q * exact).max() * 2**-11"),
            cause="The largest weight times 2^-11 is what the error can be at most, not what it is.",
            cure="Round the scales that you are given, and measure.",
            see="answers that are somewhat too large, everywhere"),
        Mistake("one scale a column", edit("scale.astype(np.float64)[:, None]", "scale.astype(np.float64)").edit(
                ".astype(np.float64)[:, None]", ".astype(np.float64)"
            ),
            cause="Without a new axis, NumPy lines the scales up with the columns; in a square matrix nothing else warns you.",
            cure="Write `scale[:, None]`: one scale for each row.",
            see="an error about shapes, or other digits where the matrix is square"),
    ),
)
