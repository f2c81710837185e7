"""Equation (1): integers with a zero point."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest32
from .affine_parameters import STEP
from .affine_parameters import oracle as parameters


def round_with_zero_point(x, scale, zero_point):
    """Equation (1): to integers with a zero point, and back.

    x: (n, k) float32, scale: (n, 1) float32 above 0, zero_point: (n, 1)
        int16 from 0 to 15
    ->   (n, k) float32, computed in float32, step by step as in (1); halves
         are rounded to even, and the integers clipped to 0 … 15
    """
    q = np.clip(np.rint(x / scale) + zero_point, 0, 15)  # (n, k)
    return (q - zero_point) * scale


def oracle(x, scale, zero_point):
    """One number at a time."""
    rows = []
    for block, [s], [z] in zip(x.tolist(), scale.tolist(), zero_point.tolist()):
        integers = [max(0, min(15, round(nearest32(v / s)) + z)) for v in block]
        rows.append([nearest32((q - z) * s) for q in integers])
    return np.array(rows, np.float32)


def _column(*values, dtype=np.float32):
    return np.array([[v] for v in values], dtype)


def cases(random):
    """Scales of 1, a half and 2, weights beyond both ends, ties, then random weights."""
    w = random.normal(0, 0.05, (20, 32)).astype(np.float32)
    return [
        (np.float32([[-5, -1.2, 0, 2.4, 10]]), _column(1), _column(5, dtype=np.int16)),
        (np.float32([[0, 0, 0, 0]]), _column(0.5), _column(5, dtype=np.int16)),
        (np.float32([[-99, -5.8, 10.8, 99]]), _column(1), _column(5, dtype=np.int16)),  # beyond both ends
        (np.float32([[-0.5, 0.5, 1.5, 2.5]]), _column(1), _column(3, dtype=np.int16)),  # ties
        (STEP * np.float32([[3.5, 7.5, -3.5, -7.5]]), _column(STEP), _column(8, dtype=np.int16)),  # ties, and 1 / scale is rounded
        (np.float32([[0, 0, 0], [0, 4, 9], [-9, -4, 0]]), _column(3, 1, 2), _column(9, 0, 15, dtype=np.int16)),
        (np.float32([[0.35, 0.15, -0.25, 0.77], [1.575, 4.2, -2.1, 0.175]]), _column(0.1, 0.35), _column(7, 6, dtype=np.int16)),  # not float16
        (np.float32([[1.54, -5.225, 2.500001, -40000, 1e30]]), _column(0.44), _column(9, dtype=np.int16)),
        (np.float32([[-5.225, 4.125, 0.825]]), _column(0.55), _column(12, dtype=np.int16)),
        (np.float32([[2.500001, 2.499999, 40000, -40000]]), _column(1), _column(0, dtype=np.int16)),
        (w.reshape(10, 64), *parameters(w.reshape(10, 64))),
    ]


EXERCISE = Exercise(
    goal="Quantize and bring back with a zero point: equation (1).",
    reference=round_with_zero_point, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        "Read equation (1) from the inside out. Each bracket is one operation, and what is between the clip and the scale is an integer from 0 to 15.",
        "`np.rint` rounds, a half to the even side. `np.clip` takes an array and the two ends. The types stay float32 by themselves.",
    ),
    why="this is what a quantizer with a zero point, such as Quark's or PyTorch's, computes with.",
    mistakes=(
        Mistake("clipped before the zero point is added",
            edit("np.clip(np.rint(x / scale) + zero_point, 0, 15)", "np.clip(np.rint(x / scale), 0, 15) + zero_point"),
            cause="The weights were clipped to 0 … 15 when zero still had the integer 0, so everything negative was lost.",
            cure="Add the zero point inside of the clip.", see="zeros where negative weights are expected"),
        Mistake("the zero point on the wrong side", edit("np.rint(x / scale) + zero_point", "np.rint(x / scale) - zero_point").edit(
                "(q - zero_point)", "(q + zero_point)"
            ),
            cause="The zero point was subtracted first and added at the end.",
            cure="Add it on the way to the integers, subtract it on the way back.",
            see="positive weights wherever small or negative ones are expected"),
        Mistake("the zero point never taken off", edit("(q - zero_point)", "q"),
            cause="The integers still count from the low end of the range.",
            cure="Subtract the zero point before you multiply.", see="every weight too large by zero_point × scale"),
        Mistake("the scale applied twice", edit("* scale", "* scale * scale"),
            cause="The result was multiplied by the scale two times.",
            cure="Multiply once.", see="right for a scale of 1, wrong for any other"),
        Mistake("integers returned", edit(" * scale", ""),
            cause="The steps were not turned back into weights.",
            cure="Multiply by the scale.", see="right for a scale of 1, whole numbers for any other"),
        Mistake("rounded after the zero point is added",
            edit("np.rint(x / scale) + zero_point", "np.rint(x / scale + zero_point)"),
            cause="The zero point was added before the rounding. An odd zero point makes an odd integer of an even one, so a tie goes to the other side.",
            cure="Round x / s alone, then add the zero point.", see="nearly everything right, and a tie one step off"),
        Mistake("halves rounded up", edit("np.rint(x / scale)", "np.floor(x / scale + np.float32(0.5))"),
            cause="A half goes up, and equation (1) sends it to the even integer.",
            cure="Use `np.rint`.", see="a tie one step too high"),
        Mistake("divided in float64", edit("np.rint(x / scale)", "np.rint(x.astype(np.float64) / scale).astype(np.float32)"),
            cause="x / scale was computed in float64. In float32 it is rounded, sometimes to a half.",
            cure="Divide float32 by float32.", see="nearly everything right, and a tie one step off"),
        Mistake("multiplied by 1 / scale", edit("np.rint(x / scale)", "np.rint(x * (1 / scale))"),
            cause="1 / scale is rounded to float32, and so is the product, and a half may become less than a half.",
            cure="Divide by the scale.", see="nearly everything right, and a tie one step off"),
        Mistake("cut off instead of rounded", edit("np.rint", "np.trunc"),
            cause="Each weight goes to the next level towards zero, and not to the nearest one.",
            cure="Use `np.rint`.", see="about half of the weights one step too close to zero"),
        Mistake("no clip", edit("np.clip(np.rint(x / scale) + zero_point, 0, 15)", "np.rint(x / scale) + zero_point"),
            cause="Four bits end at 0 and 15, and weights beyond the range were kept.",
            cure="Clip the integers to 0 … 15.", see="99 where 10 is expected"),
        Mistake("clipped as if signed", edit("0, 15)", "-8, 7)"),
            cause="-8 … 7 is the range of a signed integer; with a zero point, integers start at 0.",
            cure="Clip to 0 … 15.", see="large weights cut off"),
    ),
)
