"""Equation (2): integers above a minimum."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest32


def round_with_minimum(x, scale, minimum):
    """Equation (2): to integers above a minimum, and back.

    x: (n, k) float32, scale: (n, 1) float32 above 0, minimum: (n, 1)
        float32
    ->   (n, k) float32, computed in float32, step by step as in (2); halves
         are rounded to even, and the integers clipped to 0 … 15
    """
    q = np.clip(np.rint((x - minimum) / scale), 0, 15)  # (n, k)
    return q * scale + minimum


def oracle(x, scale, minimum):
    """One number at a time."""
    rows = []
    for block, [s], [m] in zip(x.tolist(), scale.tolist(), minimum.tolist()):
        integers = [max(0, min(15, round(nearest32(nearest32(v - m) / s)))) for v in block]
        rows.append([nearest32(nearest32(q * s) + m) for q in integers])
    return np.array(rows, np.float32)


def _columns(*rows):
    return np.float32([[s] for s, _ in rows]), np.float32([[m] for _, m in rows])


def cases(random):
    """Several scales and mins, weights beyond both ends, then random weights."""
    w = random.normal(0, 0.05, (20, 32)).astype(np.float32)
    low = w.min(axis=1, keepdims=True).astype(np.float16).astype(np.float32)
    scale = ((w.max(axis=1, keepdims=True) - low) / np.float32(15)).astype(np.float16).astype(np.float32)
    return [
        (np.float32([[-5, -1.2, 0, 2.4, 10]]), *_columns((1, -5))),
        (np.float32([[-2.5, -1.3, 0, 1.4, 5]]), *_columns((0.5, -2.5))),
        (np.float32([[-99, -5.8, 10.8, 99]]), *_columns((1, -5))),
        (np.float32([[3, 4.4, 9, 18]]), *_columns((1, 3))),  # a minimum above zero
        (np.float32([[-20, 0, 8, 99], [-2, -1, 1.2, 1e30]]), *_columns((2, -20), (0.25, -2))),  # 15 is no weight
        (np.float32([[-4.5, -3.5, -2.5, 3.5, -1e6]]), *_columns((1, -5))),  # ties
        (np.float32([[0, 0], [0, 0]]), *_columns((0.5, -0.3), (0.5, -7))),  # not a multiple of the scale
        (np.float32([[0, 4, 9], [9, 40, 3]]), *_columns((1, 0), (2, 0))),
        (np.float32([[2.9, 0.5, -0.58], [0.545, -1.34, 2.7], [2.54, 0.3, 99]]), *_columns((0.24, -0.58), (0.29, -1.34), (0.7, -0.61))),
        (np.float32([[1.84, -0.5, 0.6]]), *_columns((0.42, -0.89))),  # a tie, and 1 / scale is rounded
        (np.float32([[40000, -40000, 2.500001, 7.499999]]), *_columns((1, -5))),
        (w, scale, low),
        (w.reshape(10, 64), scale[::2] * np.float32(1.1), low[::2] - np.float32(0.001)),  # neither is a float16
    ]


EXERCISE = Exercise(
    goal="Quantize and bring back with a minimum: equation (2).",
    reference=round_with_minimum, oracle=oracle, cases=cases, minutes=4, difficulty="core",
    hints=(
        "A minimum is a weight. So it is subtracted before anything is counted in steps, and added after the steps are weights again.",
        "The same two functions as for the zero point, `np.rint` and `np.clip`; the minimum is subtracted before the division.",
    ),
    why="this is what a block of Q4_1 stands for.",
    mistakes=(
        Mistake("not shifted back", edit("* scale + minimum", "* scale"),
            cause="The weights still count from the minimum.",
            cure="Add the minimum at the end.", see="every weight too large by -minimum"),
        Mistake("shifted the wrong way",
            edit("x - minimum", "x + minimum").edit("* scale + minimum", "* scale - minimum"),
            cause="The minimum was added first and subtracted at the end.",
            cure="Subtract it first, so that the smallest weight becomes 0.", see="nothing below -minimum comes back"),
        Mistake("subtracted both times", edit("* scale + minimum", "* scale - minimum"),
            cause="The minimum was subtracted on the way back as well.",
            cure="Add it at the end.", see="every weight too large by twice -minimum"),
        Mistake("the minimum unsigned", edit("    q =", "    minimum = np.abs(minimum)\n    q ="),
            cause="The minimum lost its sign, and nearly every minimum is negative.",
            cure="Use it as it is.", see="everything clipped to the smallest integer, or shifted up"),
        Mistake("the scale applied twice", edit("q * scale + minimum", "(q * scale + minimum) * scale"),
            cause="Scale and minimum were multiplied by the scale once more.",
            cure="`q * scale + minimum`, and nothing else.", see="right for a scale of 1, wrong for any other"),
        Mistake("the minimum taken for a zero point", edit("q * scale + minimum", "(q + minimum) * scale"),
            cause="The minimum is a weight already; adding it to the integers multiplies it by the scale.",
            cure="Multiply first, then add.", see="right for a scale of 1, too close to zero for a smaller one"),
        Mistake("rounded in two parts",
            edit("np.rint((x - minimum) / scale)", "np.rint(x / scale) - np.rint(minimum / scale)"),
            cause="`rint(x / s) - rint(m / s)` rounds twice, and a minimum need not be a whole number of steps.",
            cure="Subtract first, then divide and round once.",
            see="right where the minimum is a multiple of the scale, a step off elsewhere"),
        Mistake("computed in float64", edit("(x - minimum) / scale", "(x.astype(np.float64) - minimum) / scale").edit("q * scale", "q.astype(np.float32) * scale"),
            cause="(x - minimum) / scale was computed in float64. In float32 each step is rounded, and a tie may come or go.",
            cure="Compute with float32 throughout.", see="nearly everything right, and a tie one step off"),
        Mistake("cut off instead of rounded", edit("np.rint", "np.trunc"),
            cause="Each weight goes to the level below it, and not to the nearest one.",
            cure="Use `np.rint`.", see="about half of the weights one step too low"),
        Mistake("clipped after the scale",
            edit("np.clip(np.rint((x - minimum) / scale), 0, 15)", "np.rint((x - minimum) / scale)")
            .edit("q * scale", "np.clip(q * scale, 0, 15)"),
            cause="0 and 15 were taken for the ends of the weights, and they are the ends of the integers.",
            cure="Clip the integers, before you multiply by the scale.", see="right for a scale of 1, other ends elsewhere"),
        Mistake("halves rounded up", edit("np.rint((x - minimum) / scale)", "np.floor((x - minimum) / scale + np.float32(0.5))"),
            cause="A half always went to the level above it.",
            cure="Use `np.rint`, which rounds a half to the even side.", see="a step too much where a weight lies between two levels"),
        Mistake("no clip", edit("np.clip(np.rint((x - minimum) / scale), 0, 15)", "np.rint((x - minimum) / scale)"),
            cause="Four bits end at 0 and 15, and weights beyond the range were kept.",
            cure="Clip the integers to 0 … 15.", see="99 where 10 is expected"),
    ),
)
