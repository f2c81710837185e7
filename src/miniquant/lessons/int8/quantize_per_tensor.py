"""A whole tensor: integers, and the one scale that brings them back."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import Pair, integer, stored_scale
from ..shared.quotients import of_quotients
from ..shared.scalars import integers_and_number32
from .absmax_scale import absmax_scale
from .round_scale import round_scale


def quantize_per_tensor(w):
    """8-bit integers and the one scale that brings them back.

    w: float32, any shape, also (), not empty   ->   (q, scale), a tuple
    scale: np.float32 (a float32 array of shape () will do), the
        absmax_scale of w after round_scale; it is not beyond float16
    q: int8, the shape of w: w / scale, with that rounded scale, float32 by
        float32, so that the quotients are float32; then rounded to the
        nearest integer, ties to the even one; then clipped to [-127, 127].
        If the scale is 0, every integer is 0. For w of shape (), an np.int8
        will do.
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
    """Whole steps, fractions and ties; scales that float16 changes; clipping; zeros; a matrix, three axes, random weights."""
    step = np.float32(np.float16(0.83))
    made = [
        [-127.0, 0.0, 64.0],
        [127.0, 0.75, -0.75],
        [127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5],
        [1.0, 0.49998, -0.25, 0.125],  # 63.4975 exact steps, 63.5013 rounded ones
        np.arange(-11, 1).reshape(3, 4) / 4,
        np.zeros((2, 2)),
        [[1e-9, -1e-9, 0.0], [0.0, 3e-6, -1e-6]],  # the scale, 2.4e-8, is 0 in float16
        np.array([190, -190, 100]) / 2**24,  # 1.496 of float16's smallest steps becomes 1: 190 steps, clipped
        np.array([127, 1.5, -3.5, 7.5, -13.5], np.float32) * step,  # ties, exact in float32; w * (1 / scale) is not
        [[[1.0, -2.0], [3.0, 4.0]]],
        -2_540_000.0,  # beyond float16, and its scale is not
        [127.0, 1.4996, 1.4999999, 2.5000002, -3.4999998, 0.4996, 0.49999997],  # beside the ties, and no ties
        [2.79, 1.0, -0.5],  # in float16, absmax / 127 is another number
        random.normal(0, 0.02, (8, 64)),
    ]
    columns = np.array([[127.0, 0.6, -2.0], [5.0, 1.0, 8.5]], np.float32).T  # in memory column by column
    return [*((np.array(w, np.float32),) for w in made), (columns,)]


def parts(result, w):
    """The one scale and the integers."""
    if not isinstance(result, tuple) or len(result) != 2 or np.shape(result[0]) != w.shape or np.ndim(result[1]):
        return {}
    return {"the scales": np.reshape(result[1], 1), "the values": np.reshape(result[0], (1, -1))}


def traits(w):
    """What is special about the scale and the quotients."""
    return of_quotients(w, np.float32(stored_scale(w.ravel().tolist(), 127)), 127)


EXERCISE = Exercise(
    goal="Turn a tensor into 8-bit integers and the one scale that brings them back.",
    reference=quantize_per_tensor, oracle=oracle, cases=cases, minutes=10, difficulty="core",
    observe=integers_and_number32, parts=parts, traits=traits,
    hints=(
        "First the scale, then its rounded value, then the division by the rounded value. After the division, the order is: round, "
        "clip, cast. Think about what to divide by where the scale is 0.",
        "`np.rint` rounds ties to the even integer, the method `clip` limits, and `astype` casts. A number divided by `np.inf` is 0.",
    ),
    why="a float32 weight took four bytes and now takes one, and one more number brings all of them back.",
    mistakes=(
        Mistake("scale never rounded", edit("round_scale(absmax_scale(w))", "absmax_scale(w)"),
            cause="The scale still has float32's digits. The file has room for float16's only.",
            cure="Pass the scale through `round_scale` before you use it.",
            see="a scale that differs in the fourth significant digit"),
        Mistake("scale rounded late", edit("round_scale(absmax_scale(w))", "absmax_scale(w)").edit(
                "return q, scale", "return q, round_scale(scale)"
            ),
            cause="The integers fit the exact scale, and the scale that is returned is the rounded one. The integers may differ from those of the rounded scale.",
            cure="Round the scale first, then divide by the rounded scale. Then your code has only one scale.",
            see="the scale right, and a few integers off by one"),
        Mistake("truncated", edit("np.rint", ""),
            cause="The fraction of each quotient is cut off, so no quotient is rounded away from zero.",
            cure="Call `np.rint` before the cast.", see="0 where 1 is expected for 0.75, and 0 where -1 is expected"),
        Mistake("half rounded up", edit("np.rint(w / divisor)", "np.floor(w / divisor + 0.5)"),
            cause="Every tie is rounded up, so 0.5 becomes 1 and -0.5 becomes 0.",
            cure="Use `np.rint`, which rounds ties to the even integer.",
            see="integers off by one where the quotient ends in exactly .5"),
        Mistake("half rounded away from zero",
            edit("np.rint(w / divisor)", "np.trunc(w / divisor + np.copysign(0.5, w))"),
            cause="Ties are rounded away from zero. numpy, torch and this format round them to the even integer.",
            cure="Use `np.rint`.", see="1 and -1 where 0 is expected for 0.5 and -0.5"),
        Mistake("multiplied by the inverse", edit("w / divisor", "w * (np.float32(1) / divisor)"),
            cause="The quotients are those of `w * (1 / scale)`, which is rounded twice. A tie may become a number beside the tie.",
            cure="Divide the weights by the scale.", see="a few integers off by one where the quotient ends in exactly .5"),
        Mistake("divided by zero", edit(" if scale > 0 else np.float32(np.inf)", ""),
            cause="Where the rounded scale is 0, every integer must be 0. These are as after a division by 0 or by a tiny number.",
            cure="Where the scale is 0, every integer must be 0: divide by `np.inf` there.",
            see="127 where 0 is expected for weights near 1e-9, or a warning about a division"),
        Mistake("a small number instead of zero",
            edit("round_scale(absmax_scale(w))", "np.maximum(round_scale(absmax_scale(w)), np.float32(1e-8))"),
            cause="The scale is never less than 1e-8. But float16 cannot hold 1e-8, so the file would not give it back.",
            cure="Return the scale 0 as it is, and divide by `np.inf` in its place.",
            see="a scale of 1e-8 where 0 is expected"),
        Mistake("not clipped before the cast", edit(".clip(-127, 127)", ".astype(np.int64)"),
            cause="A weight can be so many steps from zero, because the scale was rounded, that it is rounded to 128 or more. An int8 wraps around there.",
            cure="Put `.clip(-127, 127)` before the cast.", see="-66 where 127 is expected, for very small weights"),
        Mistake("not cast to int8", edit(".astype(np.int8)", ""),
            cause="The numbers are whole, but they are still float32 and take four bytes each.",
            cure="End with `.astype(np.int8)`.", see="the dtype float32 where int8 is expected"),
        Mistake("returned in the wrong order", edit("return q, scale", "return scale, q"),
            cause="The scale is first and the integers are second.",
            cure="Return `q, scale`.", see="a type that differs in q"),
        Mistake("clipped to -128",
            edit("-127", "-128"),
            cause="An int8 can hold -128. A symmetric range does not use it, so that w and -w get opposite integers.",
            cure="Clip to [-127, 127].",
            see="-128 where -127 is expected, for very small weights"),
        Mistake("a small number added to the scale",
            edit("w / divisor", "w / (scale + np.float32(1e-9))"),
            cause="A small number in the divisor avoids the division by zero. It also changes quotients where the scale is small, and a scale of 0 must give integers of 0.",
            cure="Divide by the scale itself, and by `np.inf` where it is 0.",
            see="integers that are wrong only for very small weights"),
    ),
)
