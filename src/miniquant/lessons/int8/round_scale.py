"""What a file keeps of a scale."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest16


def round_scale(scale):
    """The scales as a file gives them back: rounded to float16, held in float32.

    scale: float32, one number or an array of any shape   ->   float32 of the same shape
    """
    return scale.astype(np.float16).astype(np.float32)


def oracle(scale):
    """One number at a time, with ``struct``."""
    return np.array([nearest16(x) for x in scale.ravel().tolist()], np.float32).reshape(scale.shape)


def cases(random):
    """Scales that float16 holds and scales that it does not, too small ones, ties, a matrix, one number, random scales."""
    made = [
        [0.5, 0.25],
        [0.1],
        [1 / 127, 2 / 127, 3 / 127],
        [2049.0, 2051.0],
        [1e-9, 0.0],
        [[0.1, 0.2], [0.3, 0.4]],
        random.uniform(0, 0.02, 8),
    ]
    return [*((np.array(scale, np.float32),) for scale in made), (np.float32(0.1),)]


EXERCISE = Exercise(
    goal="Turn scales into the numbers that a file with float16 scales will give back.",
    reference=round_scale, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up",
    hints=(
        "`astype` converts an array to another type of number, and rounds to the nearest number that the type has.",
        "Two conversions in a row: to `np.float16`, which loses digits, and back to `np.float32`, which loses nothing.",
    ),
    why="from here on your code computes with the numbers that the file holds, so nothing can change on the way back.",
    mistakes=(
        Mistake("left in float16", edit(".astype(np.float32)", ""),
            cause="The digits are right, and the type is float16: whatever you compute with it next is rounded again.",
            cure="Convert back with `.astype(np.float32)`.", see="the dtype float16 where float32 is expected"),
        Mistake("back to float64", edit("np.float32", "float"),
            cause="Python's `float` is float64, and so is `astype(float)`.",
            cure="Say `np.float32`.", see="the dtype float64 where float32 is expected"),
        Mistake("not rounded at all", edit(".astype(np.float16)", ""),
            cause="These are the exact scales, and a file with float16 scales has no room for all of their digits.",
            cure="Convert to `np.float16` first; what that loses is what the file loses.",
            see="0.1 where 0.099975586 is expected"),
        Mistake("decimal places", edit("scale.astype(np.float16).astype(np.float32)", "np.round(scale, 3)"),
            cause="`np.round(scale, 3)` keeps three decimal places, and float16 keeps eleven binary digits wherever the point stands.",
            cure="Convert with `astype` and leave the rounding to the type.",
            see="0.008 where 0.00787 is expected, or zeros for small scales"),
        Mistake("bytes reinterpreted", edit("astype(np.float16)", "view(np.float16)"),
            cause="`view` reads the same bytes as another type, so each float32 falls into two meaningless halves.",
            cure="Use `astype`, which converts the value.",
            see="twice as many numbers as expected, some of them absurd"),
        Mistake("rounded to whole numbers", edit("scale.astype(np.float16).astype(np.float32)", "np.rint(scale)"),
            cause="`np.rint` rounds to integers; that is for the weights, later, not for the scale.",
            cure="Convert to `np.float16` and back.", see="zeros where small scales are expected"),
        Mistake("changed in place", edit("return scale", "scale[...] = scale.astype(np.float16)\n    return scale"),
            cause="Your function writes the rounded numbers into the caller's array.",
            cure="Return a new array: `astype` makes one.", see="a check that says your argument changed"),
    ),
)
