"""Integers, each row measured with its own scale."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.by_hand import integer
from ..shared.quotients import of_quotients


def quantize_per_channel(w, scale):
    """8-bit integers, each row divided by its own scale.

    w: (out, in) float32, scale: (out,) float32, from channel_scales
    ->   (out, in) int8

    w / scale, float32 by float32; then rounded to the nearest integer, ties
    to the even one; then clipped to [-127, 127]. If the scale of a row is
    0, its integers are 0.
    """
    divisor = np.where(scale == 0, np.float32(np.inf), scale)[:, None]  # (out, 1)
    return np.rint(w / divisor).clip(-127, 127).astype(np.int8)


def oracle(w, scale):
    """One weight at a time, with Python's own ``round``."""
    rows = zip(w.tolist(), scale.tolist())
    return np.array([[integer(x, s, 127) for x in row] for row, s in rows], np.int8)


def cases(random):
    """Whole steps, fractions and ties; weights beyond 127 steps; a scale of 0; random rows."""
    drawn = random.normal(0, 0.02, (6, 32)).astype(np.float32)
    steps = np.array([0.37, 0.83], np.float16).astype(np.float32)
    made = [
        ([[2.0, 4.0], [8.0, 16.0]], [1.0, 2.0]),
        ([[508.0], [-200.0]], [4.0, 2.0]),
        ([[0.75, -0.75], [0.3, -0.3]], [1.0, 1.0]),
        ([[0.5, 1.5, 2.5], [-0.5, -1.5, -2.5]], [1.0, 1.0]),
        ([[127.4, -127.4], [128.0, -128.0], [200.0, -200.0]], [1.0, 1.0, 1.0]),
        ([[1.0, 2.0], [1e-9, -1e-9]], [1.0, 0.0]),
        ([[0.0, 0.0, 0.0]], [0.0]),
        ([[300.0, -300.0, 256.0], [500.0, -512.0, -256.0]], [1.0, 1.0]),  # a byte holds 256 values
        ([[1e9, -1e9, 0.5]], [1.0]),
        ([[1.4996, 1.4999999, 0.49999997], [2.5000002, -3.4999998, -0.49999997]], [1.0, 1.0]),  # beside the ties, and no ties
        ([[0.0, 0.0], [2.0, -4.0], [1e-6, -1e-6], [3.0, 6.0]], [0.0, 1.0, 0.0, 2.0]),  # rows after a scale of 0
        (np.array([[127, 6.5, -12.5], [127, -3.5, 7.5]], np.float32) * steps[:, None], steps),  # ties; w * (1 / scale) misses them
        (np.array([[190, -190, 100]]) / 2**24, [2.0**-24]),  # 190 steps
        ([[7e-6, -3e-6], [3e-6, -1e-6]], [2.0**-24, 0.0]),  # many steps of the scale before it
        (drawn, (np.abs(drawn).max(axis=1) / np.float32(127)).astype(np.float16)),
    ]
    columns = np.array([[2.0, 0.6, -2.0], [5.0, 1.0, 9.0]], np.float32).T  # in memory column by column
    made.append((columns, [1.0, 0.5, 2.0]))
    return [(np.asarray(w, np.float32), np.array(scale, np.float32)) for w, scale in made]


def parts(result, w, scale):
    """The integers, and the scales that they were divided by."""
    if not isinstance(result, np.ndarray) or result.shape != w.shape:
        return {}
    return {"the scales": scale, "the values": result}


def traits(w, scale):
    """What is special about the quotients."""
    return of_quotients(w, scale[:, None], 127)


EXERCISE = Exercise(
    goal="Divide every row by its own scale, and then round, clip and cast the quotients.",
    reference=quantize_per_channel, oracle=oracle, cases=cases, parts=parts, traits=traits, minutes=10, difficulty="core",
    hints=(
        "numpy compares shapes from the right, so (out, in) / (out,) uses a scale for each column. You need the shape (out, 1).",
        "`[:, None]` adds an axis at the end. `np.where(condition, a, b)` takes a where the condition holds, and b elsewhere; it can "
        "replace a scale of 0. Round, clip and cast as in `quantize_per_tensor`.",
    ),
    why="clipping before the cast makes a weight that is too large a little smaller. The other order could change its sign.",
    mistakes=(
        Mistake("scales along the columns", edit("[:, None]", ""),
            cause="The scales are used for the columns, as `w / scale` does. For a square matrix numpy does not complain.",
            cure="Divide by `scale[:, None]`, of shape (out, 1).",
            see="a broadcasting error for (3, 2) and wrong numbers for (2, 2)"),
        Mistake("truncated", edit("np.rint", ""),
            cause="The fraction of each quotient is cut off.",
            cure="Call `np.rint` before it.", see="0 where 1 is expected for 0.75"),
        Mistake("rounded down", edit("np.rint(w / divisor)", "(w // divisor)"),
            cause="Every quotient is rounded down, towards minus infinity.",
            cure="Divide with `/` and call `np.rint`.", see="-1 where 0 is expected for -0.3"),
        Mistake("half rounded up", edit("np.rint(w / divisor)", "np.floor(w / divisor + 0.5)"),
            cause="Every tie is rounded up.",
            cure="Use `np.rint`, which rounds ties to the even integer.", see="1 where 0 is expected for 0.5"),
        Mistake("multiplied by the inverse", edit("w / divisor", "w * (np.float32(1) / divisor)"),
            cause="The quotients are those of `w * (1 / scale)`, which is rounded twice. A tie may become a number beside the tie.",
            cure="Divide the weights by the scale.", see="a few integers off by one where the quotient ends in exactly .5"),
        Mistake("never clipped", edit(".clip(-127, 127)", ".astype(np.int64)"),
            cause="A weight may be more than 127 steps from zero. An int8 that gets 128 wraps around to -128.",
            cure="Put `.clip(-127, 127)` before the cast.",
            see="-128 where 127 is expected for 128 steps, and -56 for 200"),
        Mistake("cast before clipping",
            edit(".clip(-127, 127).astype(np.int8)", ".astype(np.int64).astype(np.int8).clip(-127, 127)"),
            cause="The integers are what is left if clipping comes after the cast: an int8 that gets 200 wraps around to -56.",
            cure="Clip to [-127, 127] first and cast last.",
            see="-127 where 127 is expected for 128 steps, and -56 for 200"),
        Mistake("clipped to -128", edit("-127", "-128"),
            cause="[-128, 127] is what an int8 holds. A symmetric range does not use -128, so that w and -w get opposite integers.",
            cure="Clip to [-127, 127].", see="-128 where -127 is expected"),
        Mistake("divided by zero", edit("np.where(scale == 0, np.float32(np.inf), scale)", "scale"),
            cause="A row of zeros, or of weights whose scale is too small for float16, has the scale 0, and its integers must be 0. These are as after a division by 0 or by a tiny number.",
            cure="Use `np.where(scale == 0, np.float32(np.inf), scale)` as the divisor: every number divided by infinity is 0.",
            see="127 where 0 is expected for weights near 1e-9, or a warning about a division"),
        Mistake("weights changed in place",
            edit("return np.rint(w / divisor)", "w /= divisor\n    return np.rint(w)"),
            cause="After the call the caller's array holds the quotients.",
            cure="Write `w / …`, which makes a new array.", see="a check that says your argument changed"),
        Mistake("half rounded away from zero",
            edit("np.rint(w / divisor)", "np.trunc(w / divisor + np.copysign(0.5, w))"),
            cause="Ties are rounded away from zero. numpy, torch and this format round them to the even integer.",
            cure="Use `np.rint`.",
            see="1 and -1 where 0 is expected for 0.5 and -0.5"),
        Mistake("multiplied by the scale",
            edit("w / divisor", "w * np.where(scale == 0, 0, scale)[:, None]"),
            cause="The weights were multiplied by the scale.",
            cure="A weight divided by the width of a step gives the number of steps: write `/`.",
            see="integers that are all too small for small scales"),
        Mistake("its own scales",
            edit("np.where(scale == 0,", "np.where((scale := np.abs(w).max(axis=1) / np.float32(127)) == 0,"),
            cause="The integers fit scales that are computed from w, not those of the argument.",
            cure="Divide by the `scale` that the function gets.",
            see="right for scales from channel_scales, wrong for other scales"),
        Mistake("one scale for all rows",
            body("return np.rint(w / scale.max()).clip(-127, 127).astype(np.int8)"),
            cause="Every row was divided by the largest scale.",
            cure="Each row has its own scale: divide by `scale[:, None]`.",
            see="the row with the largest scale right, the others too small"),
    ),
)
