"""The exercise of lab 04 on a whole tensor: integers, and the one scale that brings them back."""

from __future__ import annotations

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from ...quantization import symmetric
from ..shared.by_hand import Pair, integer, stored_scale
from ..shared.steps import divided, rounded, to_int8

F32 = np.float32

# ---- quantize_per_tensor ---------------------------------------------------------------------------------------------


def quantize_per_tensor(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """The reference: w, any shape, float32 -> (q int8 of the same shape, scale: a float32 number)."""
    values, scale = symmetric.quantize_per_tensor(w, bits=8)
    return values, F32(scale)


def _tensor_oracle(w: np.ndarray) -> Pair:
    numbers = w.ravel().tolist()
    scale = stored_scale(numbers, 127)
    return Pair(np.array([integer(x, scale, 127) for x in numbers], np.int8).reshape(w.shape), F32(scale))


def _tensor_cases(random: np.random.Generator) -> list[Case]:
    made = [[-127.0, 0.0, 64.0], [127.0, 0.75, -0.75], [127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5]]
    return [
        *((np.array(row, F32),) for row in made),
        (np.array([1.0, 0.49998, -0.25, 0.125], F32),),  # 63.4975 exact steps, 63.5013 rounded ones
        (np.arange(-6, 6, dtype=F32).reshape(3, 4) / 4,),
        (np.zeros((2, 2), F32),),
        (np.array([[1e-9, -1e-9, 0.0], [0.0, 5e-10, 0.0]], F32),),  # the scale, 8e-12, is 0 in float16
        (random.normal(0, 0.02, (8, 64)).astype(F32),),
    ]


def _tensor_scale(w: np.ndarray) -> np.float32:
    return np.abs(w).max() / F32(127)


def _scale_never_rounded(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = _tensor_scale(w)
    return to_int8(divided(w, scale)), scale


def _scale_rounded_late(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = _tensor_scale(w)
    return to_int8(divided(w, scale)), F32(rounded(scale))


def _tensor_truncated(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = rounded(_tensor_scale(w))
    return np.trunc(divided(w, scale)).clip(-127, 127).astype(np.int8), F32(scale)


def _tensor_half_up(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = rounded(_tensor_scale(w))
    return np.floor(divided(w, scale) + F32(0.5)).clip(-127, 127).astype(np.int8), F32(scale)


def _tensor_half_away(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = rounded(_tensor_scale(w))
    q = divided(w, scale)
    return np.trunc(q + np.copysign(F32(0.5), q)).clip(-127, 127).astype(np.int8), F32(scale)


def _tensor_divided_by_zero(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = rounded(_tensor_scale(w))
    return to_int8(w / scale), F32(scale)


def _tiny_instead_of_zero(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = np.maximum(rounded(_tensor_scale(w)), F32(1e-8))
    return to_int8(w / scale), F32(scale)


def _tensor_left_as_floats(w: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = rounded(_tensor_scale(w))
    return np.rint(divided(w, scale)).clip(-127, 127), F32(scale)


def _tensor_swapped(w: np.ndarray) -> tuple[np.float32, np.ndarray]:
    scale = rounded(_tensor_scale(w))
    return F32(scale), to_int8(divided(w, scale))


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
            "a small number instead of zero",
            _tiny_instead_of_zero,
            "A scale of at least 1e-8 avoids the division by zero, and float16 cannot hold 1e-8, so the file would not "
            "give it back.",
            "Return the scale 0 as it is, and divide by `np.inf` in its place.",
            "a scale of 1e-8 where 0 is expected",
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
