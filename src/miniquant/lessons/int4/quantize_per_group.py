"""Integers, each group measured with its own scale."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import Pair, integer, slices
from ..shared.quotients import of_quotients
from .group_reshape import group_reshape
from .group_scales import group_scales
from .group_scales import oracle as scales_oracle
from .ungroup import ungroup


def quantize_per_group(w, group_size):
    """4-bit integers, each group divided by its own scale.

    w: (out, in) float32, not empty; `in` is a multiple of group_size
    ->   (q, scale), a tuple
    scale: (out, in / group_size) float32, the group_scales of w
    q: (out, in) int8: w / scale, with those rounded scales, float32 by
        float32; then rounded to the nearest integer, ties to the even one;
        then clipped to [-7, 7]. If the scale of a group is 0, its integers
        are 0.
    """
    scale = group_scales(w, group_size)
    divisor = np.where(scale == 0, np.float32(np.inf), scale)[..., None]  # (out, groups, 1)
    q = np.rint(group_reshape(w, group_size) / divisor)  # (out, groups, group_size)
    return ungroup(q.clip(-7, 7).astype(np.int8)), scale


def oracle(w, group_size):
    """One weight at a time, with Python's own ``round``."""
    scale = scales_oracle(w, group_size)
    rows = zip(w.tolist(), scale.tolist())
    q = [[integer(x, s, 7) for group, s in zip(slices(row, group_size), ss) for x in group] for row, ss in rows]
    return Pair(np.array(q, np.int8), scale)


def cases(random):
    """Whole steps, fractions and ties; groups of one; scales that float16 changes; scales of 0; random weights."""
    steps = np.array([0.37, 0.83], np.float16).astype(np.float32)
    made = [
        ([[7, 1, 70, 10]], 2),
        ([[7, 0.75, -0.75, -7]], 2),
        ([[7, 0.5, 1.5, 2.5], [-0.5, -1.5, -2.5, -7]], 4),
        ([[1.0, 0.3571, 0.25, -1.0]], 4),  # 2.4997 exact steps, 2.5003 rounded ones
        (np.arange(-16, 14).reshape(6, 5).T, 3),
        (np.array([[7, 6.5], [7, -3.5]], np.float32) * steps[:, None], 2),  # ties; w * (1 / scale) misses them
        ([[0, 0], [0, 3], [0.5, 0]], 1),
        ([[1, 2, 0, 0, 3, 4], [1e-9, -1e-9, 3, -3, 2e-7, -1e-7]], 2),  # the first scale is 0 in float16, though the weights are more than its smallest number
        ([[6e-7, -6e-7, 3e-7, 0.0], [6.7e-7, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 3.0]], 4),  # 1.44 of float16's smallest steps becomes 1: clipped; 1.6 becomes 2: 6
        ([[7, np.nextafter(np.float32(2.5), 3), np.nextafter(np.float32(1.5), 1), np.nextafter(np.float32(-0.5), -1), np.nextafter(np.float32(0.5), 0)]], 5),
        (random.normal(0, 0.02, (4, 64)), 16),
    ]
    return [(np.array(w, np.float32), group_size) for w, group_size in made]


def parts(result, w, group_size):
    """The scales and the integers."""
    groups = (w.shape[0], w.shape[1] // group_size)
    if not isinstance(result, tuple) or len(result) != 2 or (np.shape(result[0]), np.shape(result[1])) != (w.shape, groups):
        return {}
    return {"the scales": np.asarray(result[1]), "the values": np.asarray(result[0])}


def traits(w, group_size):
    """What is special about the scales and the quotients."""
    return of_quotients(w, np.repeat(scales_oracle(w, group_size), group_size, axis=1), 7)


EXERCISE = Exercise(
    goal="Turn a matrix into integers from -7 to 7 and a scale for each group.",
    reference=quantize_per_group, oracle=oracle, cases=cases, parts=parts, traits=traits, minutes=10, difficulty="core",
    hints=(
        "You have a function for each step but one: the scales, the cut into groups, the way back into rows. The step between is that of `quantize_per_channel`, with 7 in place of 127.",
        "`scale[..., None]` adds an axis at the end, so that each group meets its scale. `np.where` can replace a scale of 0 by `np.inf`. Cast to int8 last.",
    ),
    why="a weight has only fifteen levels, and the model still works. This is the arithmetic of a 4-bit file.",
    mistakes=(
        Mistake("scale rounded late", edit(
                "scale = group_scales(w, group_size)",
                "scale = np.abs(group_reshape(w, group_size)).max(axis=2) / np.float32(7)",
            ).edit("np.int8)), scale", "np.int8)), scale.astype(np.float16).astype(np.float32)"),
            cause="The integers fit the exact scale, and the scale that is returned is the rounded one. The integers may differ from those of the rounded scale.",
            cure="Divide by what `group_scales` gives. Then your code has only one scale.",
            see="the scales right, and a few integers off by one"),
        Mistake("scale never rounded", edit(
                "scale = group_scales(w, group_size)",
                "scale = np.abs(group_reshape(w, group_size)).max(axis=2) / np.float32(7)",
            ),
            cause="The scales still have float32's digits. The file has room for float16's only.",
            cure="Use `group_scales`, which rounds them.", see="scales that differ in the fourth significant digit"),
        Mistake("truncated", edit("np.rint", ""),
            cause="The fraction of each quotient is cut off. The error can be almost a whole step, and half a step with rounding.",
            cure="Call `np.rint` before the cast.", see="0 where 1 is expected for 0.75"),
        Mistake("half rounded up", edit(
                "np.rint(group_reshape(w, group_size) / divisor)",
                "np.floor(group_reshape(w, group_size) / divisor + 0.5)",
            ),
            cause="Every tie is rounded up.",
            cure="Use `np.rint`, which rounds ties to the even integer.", see="1 where 0 is expected for 0.5"),
        Mistake("multiplied by the inverse", edit("/ divisor", "* (np.float32(1) / divisor)"),
            cause="The quotients are those of `w * (1 / scale)`, which is rounded twice. A tie may become a number beside the tie.",
            cure="Divide the weights by the scale.", see="an integer off by one where the quotient is exactly 6.5"),
        Mistake("clipped to -8", edit("-7", "-8"),
            cause="Four bits can hold -8. A symmetric range does not use it, so that w and -w get opposite integers.",
            cure="Clip to [-7, 7].", see="-8 where -7 is expected, in a group of very small weights"),
        Mistake("not clipped to 7", edit(".clip(-7, 7)", ""),
            cause="The rounded scale may be smaller than the exact one. Then a quotient can be larger than 7.5, and 8 does not fit in four bits.",
            cure="Clip to [-7, 7] before the cast.", see="integers beyond 7, in a group of very small weights"),
        Mistake("divided by zero", edit("np.where(scale == 0, np.float32(np.inf), scale)", "scale"),
            cause="A group of zeros, or of weights whose scale is too small for float16, has the scale 0, and its integers must be 0. These are as after a division by 0 or by a tiny number.",
            cure="Use `np.where(scale == 0, np.float32(np.inf), scale)` as the divisor: every number divided by infinity is 0.",
            see="7 where 0 is expected for weights near 1e-9, or a warning about a division"),
        Mistake("left in groups", edit("ungroup(q.clip(-7, 7).astype(np.int8))", "q.clip(-7, 7).astype(np.int8)"),
            cause="The integers still have three axes.",
            cure="Put them back into rows with `ungroup`.", see="the shape (1, 2, 2) where (1, 4) is expected"),
        Mistake("put back transposed", edit(
                "ungroup(q.clip(-7, 7).astype(np.int8))",
                "q.clip(-7, 7).astype(np.int8).transpose(0, 2, 1).reshape(w.shape)",
            ),
            cause="The integers come as if their last two axes were exchanged: first the first ones of all groups of a row, then the second ones.",
            cure="Use `ungroup`, the exact inverse of `group_reshape`.", see="the right integers in the wrong places"),
        Mistake("scales not spread over their groups", edit("[..., None]", "")
            .edit("group_reshape(w, group_size)", "w")
            .edit("ungroup(q.clip(-7, 7).astype(np.int8))", "q.clip(-7, 7).astype(np.int8)"),
            cause="With several groups of several weights, numpy cannot divide (out, in) by (out, groups). It needs a scale for each weight, or an axis of length 1.",
            cure="Divide the groups, of shape (out, groups, group_size), by `scale[..., None]`.",
            see="an error about operands that could not be broadcast together"),
        Mistake("scales in turns", edit("[..., None]", "")
            .edit("group_reshape(w, group_size) / divisor", "w / np.tile(divisor, group_size)")
            .edit("ungroup(q.clip(-7, 7).astype(np.int8))", "q.clip(-7, 7).astype(np.int8)"),
            cause="The scales are used in turns: a, b, a, b. Two groups of two weights need a, a, b, b.",
            cure="Divide the groups by `scale[..., None]`, and numpy repeats the scales.",
            see="every second integer far too large or too small"),
        Mistake("a small number added to the scale",
            edit("np.where(scale == 0, np.float32(np.inf), scale)", "(scale + np.float32(1e-9))"),
            cause="A small number in the divisor avoids the division by zero. But where the scale is 0, every integer must be 0.",
            cure="Divide by the scale itself, and by `np.inf` where it is 0.",
            see="integers that are wrong only for very small weights"),
        Mistake("half rounded away from zero",
            edit(
                "np.rint(group_reshape(w, group_size) / divisor)",
                "np.trunc(group_reshape(w, group_size) / divisor + np.copysign(0.5, group_reshape(w, group_size)))",
            ),
            cause="Ties are rounded away from zero. numpy, torch and this format round them to the even integer.",
            cure="Use `np.rint`.",
            see="1 where 0 is expected for 0.5, and -1 for -0.5"),
    ),
)
