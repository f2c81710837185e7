"""A whole tensor: integers, and the one scale that brings them back."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import Pair, integer, stored_scale
from .absmax_scale import absmax_scale
from .round_scale import round_scale


def quantize_per_tensor(w):
    """8-bit integers and the one scale that brings them back.

    w: any shape, float32   ->   (q, scale)
    q: int8 in [-127, 127], the shape of w: w / scale in float32, rounded half to even; 0 where the scale is 0
    scale: a float32 number, already rounded to float16
    """
    scale = round_scale(absmax_scale(w))
    divisor = scale if scale > 0 else np.float32(np.inf)  # w / inf = 0
    q = np.rint(w / divisor).clip(-127, 127).astype(np.int8)
    return q, scale


def oracle(w):
    """One weight at a time, with Python's own ``round``."""
    numbers = w.ravel().tolist()
    scale = stored_scale(numbers, 127)
    return Pair(np.array([integer(x, scale, 127) for x in numbers], np.int8).reshape(w.shape), np.float32(scale))


def cases(random):
    """Whole steps, fractions and ties; scales that float16 changes; zeros; a matrix, three axes, random weights."""
    made = [
        [-127.0, 0.0, 64.0],
        [127.0, 0.75, -0.75],
        [127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5],
        [1.0, 0.49998, -0.25, 0.125],  # 63.4975 exact steps, 63.5013 rounded ones
        np.arange(-6, 6).reshape(3, 4) / 4,
        np.zeros((2, 2)),
        [[1e-9, -1e-9, 0.0], [0.0, 5e-10, 0.0]],  # the scale, 8e-12, is 0 in float16
        np.array([190, -190, 100]) / 2**24,  # 1.496 of float16's smallest steps becomes 1: 190 steps, clipped
        [[[1.0, -2.0], [3.0, 4.0]]],
        random.normal(0, 0.02, (8, 64)),
    ]
    return [(np.array(w, np.float32),) for w in made]


EXERCISE = Exercise(
    goal="Turn a tensor into 8-bit integers and the one scale that brings them back.",
    reference=quantize_per_tensor, oracle=oracle, cases=cases, minutes=10, difficulty="core",
    hints=(
        "Four steps in this order: the scale, its rounding to float16, the division, then round, clip and cast.",
        "`np.rint` rounds half to even; `.clip(-127, 127).astype(np.int8)` follows it. Divide by infinity instead of zero where the scale is zero: `np.where(scale == 0, np.float32(np.inf), scale)`.",
    ),
    why="a float32 weight took four bytes and now takes one, and nobody needs more than one number to bring them back.",
    mistakes=(
        Mistake("scale never rounded", edit("round_scale(absmax_scale(w))", "absmax_scale(w)"),
            cause="The scale still has float32's digits, and the file has room for float16's.",
            cure="Pass the scale through `round_scale` before you use it.",
            see="a scale that differs in the fourth significant digit"),
        Mistake("scale rounded late", edit("round_scale(absmax_scale(w))", "absmax_scale(w)").edit(
                "return q, scale", "return q, round_scale(scale)"
            ),
            cause="You divided by the exact scale and rounded it afterwards, so the integers belong to another scale than the one you return.",
            cure="Round the scale first, then divide by the rounded one.",
            see="the scale right, and an integer here and there off by one"),
        Mistake("truncated", edit("np.rint", ""),
            cause="The cast to int8 cuts the fraction off, so every weight moves towards zero.",
            cure="Call `np.rint` before the cast.", see="0 where 1 is expected for 0.75, and 0 where -1 is expected"),
        Mistake("half rounded up", edit("np.rint(w / divisor)", "np.floor(w / divisor + 0.5)"),
            cause="`floor(x + 0.5)` sends every tie upwards, so 0.5 becomes 1 while -0.5 becomes 0.",
            cure="Use `np.rint`, which sends ties to the even neighbour.",
            see="integers off by one where the quotient ends in exactly .5"),
        Mistake("half rounded away from zero",
            edit("np.rint(w / divisor)", "np.trunc(w / divisor + np.copysign(0.5, w))"),
            cause="C's `round` and schoolbook rounding send ties away from zero; numpy, torch and this format send them to the even neighbour.",
            cure="Use `np.rint`.", see="1 and -1 where 0 is expected for 0.5 and -0.5"),
        Mistake("divided by zero", edit(" if scale > 0 else np.float32(np.inf)", ""),
            cause="All the weights are so small that the rounded scale is 0, and dividing by it gives infinity.",
            cure="Where the scale is 0, let the integers be 0: divide by `np.inf` there.",
            see="127 where 0 is expected for weights near 1e-9, or a warning about a division"),
        Mistake("a small number instead of zero",
            edit("round_scale(absmax_scale(w))", "np.maximum(round_scale(absmax_scale(w)), np.float32(1e-8))"),
            cause="A scale of at least 1e-8 avoids the division by zero, and float16 cannot hold 1e-8, so the file would not give it back.",
            cure="Return the scale 0 as it is, and divide by `np.inf` in its place.",
            see="a scale of 1e-8 where 0 is expected"),
        Mistake("not cast to int8", edit(".astype(np.int8)", ""),
            cause="The numbers are whole, but they still are float32 and take four bytes each.",
            cure="End with `.astype(np.int8)`.", see="the dtype float32 where int8 is expected"),
        Mistake("returned in the wrong order", edit("return q, scale", "return scale, q"),
            cause="The scale came first and the integers second.",
            cure="Return `q, scale`.", see="a type that differs at item 0"),
    ),
)
