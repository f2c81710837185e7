"""Where zero lands once the minimum is a float16."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest16, nearest32


def where_zero_lands(scale, zero_point):
    """The weight that a block of Q4_1 gives back for the integer
    zero_point, which stands for 0.

    scale: (n,) float32 that float16 holds, zero_point: (n,) int16 from 0 to
        15
    ->   (n,) float32: scale × zero_point + m in float32, where m is -scale
         × zero_point rounded to float16, halves to even; this product is
         never too large for float16
    """
    minimum = (-scale * zero_point).astype(np.float16).astype(np.float32)
    return scale * zero_point + minimum


def oracle(scale, zero_point):
    """One block at a time."""
    pairs = zip(scale.tolist(), zero_point.tolist())
    return np.array([nearest32(s * z + nearest16(-s * z)) for s, z in pairs], np.float32)


def cases(random):
    """One block, powers of two, small zero points, then random ones."""

    def case(scales, zeros):
        return np.float32(np.float16(scales)), np.int16(zeros)

    drawn = random.normal(0, 0.02, 40), random.integers(0, 16, 40)
    return [
        case([0.1], [3]),
        case([0.1], [0]),
        case([0.5, 0.25, 1], [3, 7, 15]),  # powers of two: exact
        case([0.1, 0.1, 0.1], [0, 1, 2]),
        case([0.0123, 0, 3.3], [11, 13, 15]),
        case([999.5, 1e-4, 6.5e-5, 4000], [13, 11, 7, 15]),  # large and tiny scales
        case([0, 0], [7, 0]),
        case(np.abs(drawn[0]), drawn[1]),
    ]


EXERCISE = Exercise(
    goal="Find the weight that a block of Q4_1 gives back for the integer of zero, once its minimum is a float16.",
    reference=where_zero_lands, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        "In exact arithmetic the two terms cancel. One of them was a float16 on its way; ask which number the block stores in that form.",
        "`.astype` rounds to float16, and a second one makes float32 of it again. Everything else is float32 as it is.",
    ),
    why="a product of 11 bits and 4 bits takes up to 15, float16 keeps 11, and the rest is where zero went.",
    mistakes=(
        Mistake("everything cancels", edit(".astype(np.float16).astype(np.float32)", ""),
            cause="The result is 0 everywhere. That is so without rounding to float16, or with both products rounded; in the file, only the minimum is rounded.",
            cure="Round the minimum, and only the minimum, to float16.", see="exactly 0 everywhere"),
        Mistake("the minimum unsigned", edit("(-scale * zero_point)", "(scale * zero_point)"),
            cause="The minimum was taken as +scale × zero_point, so it adds up where it should cancel.",
            cure="The minimum is -scale × zero_point.", see="twice scale × zero_point"),
        Mistake("the scale applied twice", edit("(-scale * zero_point)", "(-scale * scale * zero_point)"),
            cause="The minimum has the scale in it twice.",
            cure="It is -scale × zero_point.", see="right for a scale of 1, far from 0 for any other"),
        Mistake("in steps",
            edit("return scale * zero_point + minimum", "return (scale * zero_point + minimum) / scale"),
            cause="The distance was divided by the scale.",
            cure="Return the weight itself.", see="numbers too large by 1 / scale"),
        Mistake("the distance without its side",
            edit("return scale * zero_point + minimum", "return np.abs(scale * zero_point + minimum)"),
            cause="Zero may land below zero, and the sign was dropped.",
            cure="Return the weight with its sign.", see="right where the weight is positive"),
        Mistake("the minimum returned", edit("return scale * zero_point + minimum", "return minimum"),
            cause="That is what integer 0 gives back; zero has the integer zero_point.",
            cure="Add scale × zero_point.", see="-0.3 where something tiny is expected"),
        Mistake("a float16 result",
            edit("return scale * zero_point + minimum", "return (scale * zero_point + minimum).astype(np.float16)"),
            cause="The last sum was converted to float16 as well.",
            cure="Only the minimum is stored; compute the rest in float32.", see="the dtype float16"),
    ),
)
