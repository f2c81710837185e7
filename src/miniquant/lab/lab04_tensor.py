"""The exercises of lab 04 on one scale for a whole tensor."""

from __future__ import annotations

import numpy as np

from .. import quantize
from .by_hand import integer, nearest16, nearest32, stored_scale
from .engine import Case, Exercise, Mistake
from .steps import divided, rounded, to_int8

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
    return w.max() / np.float32(127)


def _over_128(w: np.ndarray) -> np.float32:
    return np.abs(w).max() / np.float32(128)


def _over_255(w: np.ndarray) -> np.float32:
    return np.abs(w).max() / np.float32(255)


def _whole_range(w: np.ndarray) -> np.float32:
    return (w.max() - w.min()) / np.float32(255)


def _upside_down(w: np.ndarray) -> np.float32:
    with np.errstate(divide="ignore"):
        return np.float32(127) / np.abs(w).max()


def _a_scale_per_column(w: np.ndarray) -> np.ndarray:
    return np.abs(w).max(axis=0) / np.float32(127)


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
            "divided by 128",
            _over_128,
            "An int8 reaches down to -128 but up to 127 only, so a positive absmax divided by 128 steps lands on 128, "
            "which does not exist.",
            "Divide by 127, the number of steps on either side of zero.",
            "a scale that is a little too small: 0.992 where 1.0 is expected",
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

# ---- quantize_per_tensor ---------------------------------------------------------------------------------------------


def quantize_per_tensor(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """The reference: w, any shape, float32 -> (q int8 of the same shape, scale: a float32 number)."""
    values, scale = quantize.quantize_per_tensor(w, bits=8)
    return values, F32(scale)


def _tensor_oracle(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    numbers = w.ravel().tolist()
    scale = stored_scale(numbers, 127)
    return np.array([integer(x, scale, 127) for x in numbers], np.int8).reshape(w.shape), F32(scale)


def _tensor_cases(random: np.random.Generator) -> list[Case]:
    made = [[-127.0, 0.0, 64.0], [127.0, 0.75, -0.75], [127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5], [1.0, 0.49998]]
    return [
        *((np.array(row, F32),) for row in made),
        (np.arange(-6, 6, dtype=F32).reshape(3, 4) / 4,),
        (np.zeros((2, 2), F32),),
        (np.array([1e-9, -1e-9], F32),),  # the scale, 8e-12, is 0 in float16
        (random.normal(0, 0.02, (8, 64)).astype(F32),),
    ]


def _tensor_scale(w: np.ndarray) -> np.float32:
    return np.abs(w).max() / np.float32(127)


def _scale_never_rounded(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = _tensor_scale(w)
    return to_int8(divided(w, scale)), scale


def _scale_rounded_late(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = _tensor_scale(w)
    return to_int8(divided(w, scale)), np.float32(rounded(scale))


def _tensor_truncated(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = rounded(_tensor_scale(w))
    return np.trunc(divided(w, scale)).clip(-127, 127).astype(np.int8), np.float32(scale)


def _tensor_half_up(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = rounded(_tensor_scale(w))
    return np.floor(divided(w, scale) + np.float32(0.5)).clip(-127, 127).astype(np.int8), np.float32(scale)


def _tensor_half_away(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = rounded(_tensor_scale(w))
    q = divided(w, scale)
    return np.trunc(q + np.copysign(np.float32(0.5), q)).clip(-127, 127).astype(np.int8), np.float32(scale)


def _tensor_divided_by_zero(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = rounded(_tensor_scale(w))
    return to_int8(w / scale), np.float32(scale)


def _tensor_left_as_floats(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = rounded(_tensor_scale(w))
    return np.rint(divided(w, scale)).clip(-127, 127), np.float32(scale)


def _tensor_swapped(w: np.ndarray) -> tuple[np.float32, np.ndarray]:
    scale = rounded(_tensor_scale(w))
    return np.float32(scale), to_int8(divided(w, scale))


QUANTIZE_PER_TENSOR = Exercise(
    name="quantize_per_tensor",
    lab="04",
    goal="Turn a tensor into 8-bit integers and the one scale that brings them back.",
    minutes=10,
    difficulty="core",
    reference=quantize_per_tensor,
    oracle=_tensor_oracle,
    cases=_tensor_cases,
    hints=(
        "Four steps in this order: the scale, its rounding to float16, the division, then round, clip and cast.",
        "`np.rint` rounds half to even; `.clip(-127, 127).astype(np.int8)` follows it. Divide by infinity instead of "
        "zero where the scale is zero: `np.where(scale == 0, np.float32(np.inf), scale)`.",
    ),
    why="a float32 weight took four bytes and now takes one, and nobody needs more than one number to bring them back.",
    mistakes=(
        Mistake(
            "scale never rounded",
            _scale_never_rounded,
            "The scale still has float32's digits, and the file has room for float16's.",
            "Pass the scale through `round_scale` before you use it.",
            "a scale that differs in the fourth significant digit",
        ),
        Mistake(
            "scale rounded late",
            _scale_rounded_late,
            "You divided by the exact scale and rounded it afterwards, so the integers belong to another scale than "
            "the one you return.",
            "Round the scale first, then divide by the rounded one.",
            "the scale right, and an integer here and there off by one",
        ),
        Mistake(
            "truncated",
            _tensor_truncated,
            "The cast to int8 cuts the fraction off, so every weight moves towards zero.",
            "Call `np.rint` before the cast.",
            "0 where 1 is expected for 0.75, and 0 where -1 is expected",
        ),
        Mistake(
            "half rounded up",
            _tensor_half_up,
            "`floor(x + 0.5)` sends every tie upwards, so 0.5 becomes 1 while -0.5 becomes 0.",
            "Use `np.rint`, which sends ties to the even neighbour.",
            "integers off by one where the quotient ends in exactly .5",
        ),
        Mistake(
            "half rounded away from zero",
            _tensor_half_away,
            "C's `round` and schoolbook rounding send ties away from zero; numpy, torch and this format send them to "
            "the even neighbour.",
            "Use `np.rint`.",
            "1 and -1 where 0 is expected for 0.5 and -0.5",
        ),
        Mistake(
            "divided by zero",
            _tensor_divided_by_zero,
            "All the weights are so small that the rounded scale is 0, and dividing by it gives infinity.",
            "Where the scale is 0, let the integers be 0: divide by `np.inf` there.",
            "127 where 0 is expected for weights near 1e-9, or a warning about a division",
        ),
        Mistake(
            "not cast to int8",
            _tensor_left_as_floats,
            "The numbers are whole, but they still are float32 and take four bytes each.",
            "End with `.astype(np.int8)`.",
            "the dtype float32 where int8 is expected",
        ),
        Mistake(
            "returned in the wrong order",
            _tensor_swapped,
            "The scale came first and the integers second.",
            "Return `q, scale`.",
            "a type that differs at item 0",
        ),
    ),
)
