"""The exercises of lab 04 on one scale: how wide it is, and what a file keeps of it."""

from __future__ import annotations

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import nearest16, nearest32

F32 = np.float32

# ---- absmax_scale ----------------------------------------------------------------------------------------------------


def absmax_scale(w: np.ndarray) -> np.float32:
    """The reference: w, any shape, float32 -> absmax / 127, a float32 number."""
    return np.abs(w).max() / F32(127)


def _absmax_oracle(w: np.ndarray) -> np.float32:
    """The largest distance from zero, found one number at a time."""
    farthest = 0.0
    for x in w.ravel().tolist():
        farthest = x if x > farthest else -x if -x > farthest else farthest
    return F32(nearest32(farthest / 127))


def _absmax_cases(random: np.random.Generator) -> list[Case]:
    made = [[1.0, 2.0, 127.0], [-127.0, 3.0, 64.0], [-254.0, -2.0], [0.0, 0.0]]
    return [
        *((np.array(row, F32),) for row in made),
        (np.array([[1, -2], [3, -381]], F32),),
        (random.normal(size=(4, 6)).astype(F32),),
    ]


def _signed_max(w: np.ndarray) -> np.float32:
    return w.max() / F32(127)


def _absolute_too_late(w: np.ndarray) -> np.float32:
    return abs(w.max()) / F32(127)


def _python_max(w: np.ndarray) -> np.float32:
    return max(abs(w)) / F32(127)


def _over_128(w: np.ndarray) -> np.float32:
    return np.abs(w).max() / F32(128)


def _over_255(w: np.ndarray) -> np.float32:
    return np.abs(w).max() / F32(255)


def _whole_range(w: np.ndarray) -> np.float32:
    return (w.max() - w.min()) / F32(255)


def _upside_down(w: np.ndarray) -> np.float32:
    with np.errstate(divide="ignore"):
        return F32(127) / np.abs(w).max()


def _a_scale_per_column(w: np.ndarray) -> np.ndarray:
    return np.abs(w).max(axis=0) / F32(127)


ABSMAX_SCALE = Exercise(
    name="absmax_scale",
    lab="04",
    goal="Find the width of one step, so that the weight farthest from zero lands on the integer 127 or -127.",
    minutes=5,
    difficulty="warm-up",
    reference=absmax_scale,
    oracle=_absmax_oracle,
    cases=_absmax_cases,
    hints=(
        "The farthest weight from zero may be a negative one, so take absolute values before you take the maximum.",
        "`np.abs(w).max()` is the distance that 127 steps must cover; divide it by 127.",
    ),
    why="this one number decides how fine the grid is: every weight becomes a whole number of these steps.",
    tolerance=1e-7,
    mistakes=(
        Mistake(
            "signed maximum",
            _signed_max,
            "You took the largest weight, and a negative weight that lies farther from zero was not seen.",
            "Take `np.abs(w)` first, then the maximum.",
            "a scale that is too small, or negative, when the longest weight is negative",
        ),
        Mistake(
            "absolute value taken too late",
            _absolute_too_late,
            "`abs(w.max())` picks the largest weight first, and by then the longer negative one is out of the race.",
            "Turn the two around: `np.abs(w).max()`.",
            "a positive scale that is too small when the longest weight is negative",
        ),
        Mistake(
            "Python's max on an array",
            _python_max,
            "Python's own `max` compares whole rows, and numpy does not say whether one row is larger than another.",
            "Use the array's method, `np.abs(w).max()`, which looks at every number.",
            "a ValueError about the truth value of an array",
        ),
        Mistake(
            "divided by 128",
            _over_128,
            "An int8 reaches down to -128 but up to 127 only, so a positive absmax divided by 128 steps lands on 128, "
            "which does not exist.",
            "Divide by 127, the number of steps on either side of zero.",
            "a scale that is a little too small: 1.984375 where 2.0 is expected",
        ),
        Mistake(
            "divided by 255",
            _over_255,
            "255 is the number of steps on both sides of zero together, and absmax is the length of one side.",
            "Divide by 127.",
            "a scale about half of what is expected",
        ),
        Mistake(
            "from minimum to maximum",
            _whole_range,
            "(max - min) / 255 is the scale of asymmetric quantization, which also stores a zero point.",
            "Symmetric quantization keeps zero in the middle: use the largest absolute value and 127.",
            "a scale that depends on both the smallest and the largest weight",
        ),
        Mistake(
            "upside down",
            _upside_down,
            "127 / absmax is the number of steps in a unit, the inverse of the scale.",
            "Divide absmax by 127, not 127 by absmax.",
            "a large scale for small weights, or `inf` for zeros",
        ),
        Mistake(
            "one scale a column",
            _a_scale_per_column,
            "`axis=0` keeps a maximum for each column, and this tensor has one scale for all of it.",
            "Leave `axis` out, so that `max()` returns one number.",
            "an array where a number is expected",
        ),
    ),
)

# ---- round_scale -----------------------------------------------------------------------------------------------------


def round_scale(scale: np.ndarray) -> np.ndarray:
    """The reference: scale, any shape, float32 -> the nearest float16 numbers, as float32."""
    return scale.astype(np.float16).astype(F32)


def _round_oracle(scale: np.ndarray) -> np.ndarray:
    return np.array([nearest16(x) for x in scale.ravel().tolist()], F32).reshape(scale.shape)


def _round_cases(random: np.random.Generator) -> list[Case]:
    made = [[0.5, 0.25], [0.1], [1 / 127, 2 / 127, 3 / 127], [2049.0, 2051.0], [1e-9, 0.0]]
    return [
        *((np.array(row, F32),) for row in made),
        (np.array([[0.1, 0.2], [0.3, 0.4]], F32),),
        (random.uniform(0, 0.02, 8).astype(F32),),
    ]


def _left_in_float16(scale: np.ndarray) -> np.ndarray:
    return scale.astype(np.float16)


def _back_to_float64(scale: np.ndarray) -> np.ndarray:
    return scale.astype(np.float16).astype(np.float64)


def _not_rounded(scale: np.ndarray) -> np.ndarray:
    return scale.astype(F32)


def _three_decimals(scale: np.ndarray) -> np.ndarray:
    return np.round(scale, 3)


def _reinterpreted(scale: np.ndarray) -> np.ndarray:
    return scale.view(np.float16).astype(np.float32)


def _whole_numbers(scale: np.ndarray) -> np.ndarray:
    return np.rint(scale)


def _rounded_in_place(scale: np.ndarray) -> np.ndarray:
    scale[...] = scale.astype(np.float16)
    return scale.copy()


ROUND_SCALE = Exercise(
    name="round_scale",
    lab="04",
    goal="Turn scales into the numbers that a file with float16 scales will give back.",
    minutes=5,
    difficulty="warm-up",
    reference=round_scale,
    oracle=_round_oracle,
    cases=_round_cases,
    hints=(
        "`astype` converts an array to another type of number, and rounds to the nearest number that the type has.",
        "Two conversions in a row: to `np.float16`, which loses digits, and back to `np.float32`, which loses nothing.",
    ),
    why="from here on your code computes with the numbers that the file holds, so nothing can change on the way back.",
    mistakes=(
        Mistake(
            "left in float16",
            _left_in_float16,
            "The digits are right, and the type is float16: whatever you compute with it next is rounded again.",
            "Convert back with `.astype(np.float32)`.",
            "the dtype float16 where float32 is expected",
        ),
        Mistake(
            "back to float64",
            _back_to_float64,
            "Python's `float` is float64, and so is `astype(float)`.",
            "Say `np.float32`.",
            "the dtype float64 where float32 is expected",
        ),
        Mistake(
            "not rounded at all",
            _not_rounded,
            "These are the exact scales, and a file with float16 scales has no room for all of their digits.",
            "Convert to `np.float16` first; what that loses is what the file loses.",
            "0.1 where 0.099975586 is expected",
        ),
        Mistake(
            "decimal places",
            _three_decimals,
            "`np.round(scale, 3)` keeps three decimal places, and float16 keeps eleven binary digits wherever the "
            "point stands.",
            "Convert with `astype` and leave the rounding to the type.",
            "0.008 where 0.00787 is expected, or zeros for small scales",
        ),
        Mistake(
            "bytes reinterpreted",
            _reinterpreted,
            "`view` reads the same bytes as another type, so each float32 falls into two meaningless halves.",
            "Use `astype`, which converts the value.",
            "twice as many numbers as expected, some of them absurd",
        ),
        Mistake(
            "rounded to whole numbers",
            _whole_numbers,
            "`np.rint` rounds to integers; that is for the weights, later, not for the scale.",
            "Convert to `np.float16` and back.",
            "zeros where small scales are expected",
        ),
        Mistake(
            "changed in place",
            _rounded_in_place,
            "Your function writes the rounded numbers into the caller's array.",
            "Return a new array: `astype` makes one.",
            "a check that says your argument changed",
        ),
    ),
)
