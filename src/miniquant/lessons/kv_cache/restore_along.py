"""From levels back to numbers."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from .quantize_along import quantize_along


def restore_along(levels, scale, low):
    """The numbers that levels stand for.

    levels: uint8, of any shape; scale, low: float16, of the same number of
        axes, with length 1 at one of them
    ->   float32, the shape of levels: level × scale + low, with float32
         arithmetic
    """
    return levels * scale.astype(np.float32) + low


def oracle(levels, scale, low):
    """One number at a time: product and sum are exact in Python's floats, then rounded once."""
    wide = [np.broadcast_to(part, levels.shape).ravel().tolist() for part in (levels, scale, low)]
    return np.array([level * s + m for level, s, m in zip(*wide)], np.float64).astype(np.float32).reshape(levels.shape)


def cases(random):
    """One row, one column, a scale with many digits, products beyond float16, then what a quantizer makes."""

    def case(levels, scale, low):
        return np.array(levels, np.uint8), np.array(scale, np.float16), np.array(low, np.float16)

    x = random.normal(0, [1, 8, 0.2], (7, 3)).astype(np.float32)
    return [
        case([[0, 1, 2]], [[1]], [[0]]),
        case([0, 1, 15], [0.5], [-2]),
        case([[3], [0]], [[2]], [[1]]),
        case([[1, 2], [3, 4]], [[1], [10]], [[0], [100]]),
        case([[1, 2], [3, 4]], [[1, 10]], [[0, 100]]),
        case([[11, 7, 13]], [[0.1]], [[0.3]]),
        case([[255, 200], [3, 1]], [[300], [0]], [[-5], [7]]),
        case([[0, 0]], [[0]], [[0.25]]),
        tuple(quantize_along(x, 0, 4)),
        tuple(quantize_along(random.normal(0, 1, (2, 3, 5)).astype(np.float32), 2, 8)),
        tuple(quantize_along(random.normal(0, 1, (4, 2, 3)).astype(np.float32), 0, 4)),
    ]


_SUM = "levels * scale.astype(np.float32) + low"

EXERCISE = Exercise(
    goal="Turn levels back into numbers, in float32.",
    reference=restore_along, oracle=oracle, cases=cases, minutes=3, difficulty="warm-up",
    hints=(
        "Arrays with an axis of length 1 fit to the levels by broadcasting, so one line does it. Think of the type that numpy computes in, if one array is uint8 and the other float16.",
        "`.astype(np.float32)` before the product makes numpy compute in float32.",
    ),
    why="a cache is stored in few bits and computed with in float32: this line is all that lies between.",
    mistakes=(
        Mistake("float16 arithmetic", edit(_SUM, "(levels * scale + low).astype(np.float32)"),
            cause="uint8 times float16 is computed in float16: each product and sum is rounded to eleven bits, and beyond 65,504 it is infinite.",
            cure="Convert the scale to float32 before you multiply.", see="numbers that are a little off, and `inf` for large ones"),
        Mistake("a float16 result", edit(_SUM, "levels * scale + low"),
            cause="uint8 times float16 is float16, so the result is.",
            cure="Convert the scale to float32 before you multiply.", see="the dtype float16"),
        Mistake("low forgotten", edit(" + low", ""),
            cause="Low was not added.",
            cure="Add low.", see="right where low is 0"),
        Mistake("low subtracted", edit(" + low", " - low"),
            cause="Low was subtracted; the quantizer did that, and here it is taken back.",
            cure="Add low.", see="right where low is 0"),
        Mistake("low first", edit(_SUM, "(levels + low.astype(np.float32)) * scale"),
            cause="Low was added to the level and multiplied by the scale.",
            cure="Multiply the level by the scale, then add low.", see="right where low is 0 or the scale is 1"),
        Mistake("divided", edit("levels * scale.astype(np.float32)", "levels / np.where(scale == 0, np.float32(np.inf), scale)"),
            cause="The levels were divided by the scale.",
            cure="Multiply.", see="right where the scale is 1"),
        Mistake("no scale", edit("levels * scale.astype(np.float32)", "levels * np.ones_like(scale, np.float32)"),
            cause="The levels were not multiplied by the scale.",
            cure="Multiply by the scale.", see="right where the scale is 1"),
        Mistake("centred levels", edit("levels * scale", "(levels - np.float32(8)) * scale"),
            cause="8 was subtracted from the levels, as in Q4_0. Here level 0 is low.",
            cure="Use the levels as they are.", see="numbers that are 8 scales too small"),
        Mistake("float64", edit("np.float32", "np.float64"),
            cause="The result is float64.",
            cure="Convert to float32.", see="the dtype float64"),
    ),
)
