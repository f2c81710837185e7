"""The weights that the integers of groups stand for."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.by_hand import nearest32
from .group_reshape import group_reshape
from .ungroup import ungroup


def dequantize_per_group(q, scale):
    """The weights that the integers stand for: each integer times the scale
    of its group.

    q: (out, in) int8, from -128 to 127, not empty; scale: (out, groups)
        float32, finite, 0 or more
    ->   (out, in) float32

    A group is `in` / groups neighbours of a row. The first scale of a row
    belongs to the first group.
    """
    groups = group_reshape(q, q.shape[1] // scale.shape[1]).astype(np.float32)
    return ungroup(groups * scale[..., None])


def oracle(q, scale):
    """One product at a time."""
    size = q.shape[1] // scale.shape[1]
    rows = zip(q.tolist(), scale.tolist())
    return np.array([[nearest32(x * ss[i // size]) for i, x in enumerate(row)] for row, ss in rows], np.float32)


def cases(random):
    """Products that can be read by eye, a scale of 0, one group a row, groups of one, random integers and scales in more than 256 columns and in four groups of 32."""
    made = [
        ([[1, 2, 3, 4]], [[1.0, 10.0]]),
        ([[1, 2, 3, 4], [-1, -2, -3, -4]], [[1.0, 10.0], [100.0, 1000.0]]),
        ([[7, -7, 1, 0, 2, 3], [1, 2, 3, 4, 5, 6], [5, 6, 7, -5, -6, -7]], [[0.5, 0.25], [0.0, 0.0], [0.0, 1.0]]),  # groups after scales of 0
        ([[1, 2, 3], [4, 5, 6]], [[10.0], [100.0]]),
        ([[1, 2], [4, -8]], [[10.0, 100.0], [0.5, 0.25]]),
        ([[1, -3, 127, -128]], [[0.1, 1e-9]]),  # scales that float16 does not have
        (random.integers(-7, 8, (264, 4)).T, random.uniform(0, 0.01, (3, 4)).astype(np.float16).T),
        (random.integers(-7, 8, (2, 128)), random.uniform(0, 0.01, (2, 4))),  # groups of 32, and not of 64
    ]
    return [(np.array(q, np.int8), np.array(scale, np.float32)) for q, scale in made]


def factors(q, scale):
    """The integers and the scales, whose product is the result."""
    return {"the integers": q.reshape(*scale.shape, -1), "the scales": scale[..., None]}


EXERCISE = Exercise(
    goal="Bring the weights back: every integer times the scale of its own group, in float32.",
    reference=dequantize_per_group, oracle=oracle, cases=cases, factors=factors, minutes=5, difficulty="core",
    hints=(
        "The size of a group is no argument. The shape of the scales tells how many groups a row has.",
        "`group_reshape` and `ungroup` work on integers too. `scale[..., None]` adds an axis at the end. The product must be float32: `astype` comes first.",
    ),
    why="the groups here are cut as in quantize_per_group, so every scale meets its own weights.",
    mistakes=(
        Mistake("scales in turns", body("return q * np.tile(scale, q.shape[1] // scale.shape[1])"),
            cause="The scales are used in turns: a, b, a, b. Two groups of two weights need a, a, b, b.",
            cure="Cut q into groups and multiply by `scale[..., None]`, or use `np.repeat` along axis 1.",
            see="20.0 where 2.0 is expected"),
        Mistake("scales not spread over their groups", body("return q * scale"),
            cause="With several groups of several weights, numpy cannot multiply (out, in) by (out, groups). It needs a scale for each weight, or an axis of length 1.",
            cure="Cut q into groups, and multiply them by `scale[..., None]`.",
            see="an error about operands that could not be broadcast together, for every case"),
        Mistake("repeated without an axis", body("return q * np.repeat(scale, q.shape[1] // scale.shape[1])"),
            cause="The scales of all rows are in one line, as `np.repeat` without `axis` puts them. That is right for one row only.",
            cure="Give it `axis=1`.",
            see="an error about operands that could not be broadcast together, for more than one row"),
        Mistake("first scale of the row only", edit("scale[..., None]", "scale[:, :1, None]"),
            cause="Every weight was multiplied by the scale of its row's first group.",
            cure="Each group has its own scale: multiply group by group.",
            see="the first group right, and the others wrong"),
        Mistake("transposed inverse", edit(
                "ungroup(groups * scale[..., None])", "(groups * scale[..., None]).transpose(0, 2, 1).reshape(q.shape)"
            ),
            cause="The weights are right, but they come as if groups and weights were exchanged: first the first weights of all groups of a row, then the second ones.",
            cure="Use `ungroup`, the exact inverse of `group_reshape`.",
            see="[1, 30, 2, 40] where [1, 2, 30, 40] is expected"),
        Mistake("multiplied in float16",
            edit(".astype(np.float32)", "").edit("scale[..., None]", "scale.astype(np.float16)[..., None]"),
            cause="The result is float16, which has fewer digits than float32.",
            cure="Multiply by the float32 scales.", see="the dtype float16 where float32 is expected"),
        Mistake("multiplied in float64", edit("np.float32", "float"),
            cause="The result is float64. That takes twice the memory, and a model would round it to float32 again.",
            cure="Use `np.float32`.", see="the dtype float64 where float32 is expected"),
        Mistake("left in groups", edit("ungroup(groups * scale[..., None])", "groups * scale[..., None]"),
            cause="The weights still have three axes.",
            cure="Put them back into rows with `ungroup`.", see="the shape (1, 2, 2) where (1, 4) is expected"),
        Mistake("number of groups as their size",
            edit("q.shape[1] // scale.shape[1]", "scale.shape[1]"),
            cause="`scale.shape[1]` is the number of groups in a row, not the size of a group.",
            cure="Divide the length of a row by it.",
            see="right where a row has as many groups as a group has weights, else an error or another shape"),
        Mistake("always groups of 64",
            edit("q.shape[1] // scale.shape[1]", "64"),
            cause="The groups are always of 64 weights. Here a group has `in` / groups weights.",
            cure="Work the size out from the shapes of q and scale.",
            see="an error that something cannot be reshaped"),
        Mistake("divided instead of multiplied",
            edit("groups * scale", "groups / scale"),
            cause="Quantizing divides by the scale. The way back multiplies.",
            cure="Write `*`.",
            see="numbers far too large for small scales"),
    ),
)
