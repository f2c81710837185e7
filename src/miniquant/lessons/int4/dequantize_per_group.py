"""The weights that the integers of groups stand for."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.by_hand import nearest32
from .group_reshape import group_reshape
from .ungroup import ungroup


def dequantize_per_group(q, scale):
    """The weights that the integers stand for.

    q: (out, in) int8, scale: (out, groups) float32   ->   (out, in) float32
    """
    groups = group_reshape(q, q.shape[1] // scale.shape[1]).astype(np.float32)
    return ungroup(groups * scale[..., None])


def oracle(q, scale):
    """One product at a time."""
    size = q.shape[1] // scale.shape[1]
    rows = zip(q.tolist(), scale.tolist())
    return np.array([[nearest32(x * ss[i // size]) for i, x in enumerate(row)] for row, ss in rows], np.float32)


def cases(random):
    """Products that can be read by eye, a scale of 0, then random integers and scales."""
    made = [
        ([[1, 2, 3, 4]], [[1.0, 10.0]]),
        ([[1, 2, 3, 4], [-1, -2, -3, -4]], [[1.0, 10.0], [100.0, 1000.0]]),
        ([[7, -7, 1, 0, 2, 3], [5, 6, 7, -5, -6, -7]], [[0.5, 0.25], [1.0, 0.0]]),
        (random.integers(-7, 8, (4, 24)), random.uniform(0, 0.01, (4, 3)).astype(np.float16)),
    ]
    return [(np.array(q, np.int8), np.array(scale, np.float32)) for q, scale in made]


EXERCISE = Exercise(
    goal="Bring the weights back: every integer times the scale of its own group, in float32.",
    reference=dequantize_per_group, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        "Nobody tells you the size of a group, and nobody needs to: the shape of the scales says how many there are.",
        "`group_reshape(q, q.shape[1] // scale.shape[1])` gives (out, groups, group_size); multiply it by `scale[..., None]` and call `ungroup`.",
    ),
    why="the reshape here is the mirror image of the one in quantize_per_group, so every scale meets its own weights.",
    mistakes=(
        Mistake("scales in turns", body("return q * np.tile(scale, q.shape[1] // scale.shape[1])"),
            cause="`np.tile` lays the scales out as a, b, a, b, and neighbours in a group need a, a, b, b.",
            cure="Cut q into groups and multiply by `scale[..., None]`, or use `np.repeat` along axis 1.",
            see="20.0 where 2.0 is expected"),
        Mistake("scales not spread over their groups", body("return q * scale"),
            cause="(out, in) * (out, groups) has no meaning for numpy: it wants a scale for each weight, or an axis of length 1.",
            cure="Cut q into groups, and multiply them by `scale[..., None]`.",
            see="an error about operands that could not be broadcast together, for every case"),
        Mistake("repeated without an axis", body("return q * np.repeat(scale, q.shape[1] // scale.shape[1])"),
            cause="`np.repeat` without `axis` flattens the scales first, so those of all rows stand in one line.",
            cure="Say `axis=1`.",
            see="an error about operands that could not be broadcast together, for more than one row"),
        Mistake("first scale of the row only", edit("scale[..., None]", "scale[:, :1, None]"),
            cause="Every weight was multiplied by the scale of its row's first group.",
            cure="Each group has a scale of its own: multiply group by group.",
            see="the first group right, and the others wrong"),
        Mistake("transposed inverse", edit(
                "ungroup(groups * scale[..., None])", "(groups * scale[..., None]).transpose(0, 2, 1).reshape(q.shape)"
            ),
            cause="The reshape back into rows swapped two axes, so every weight is right and stands in the wrong place.",
            cure="Use `ungroup`, the exact inverse of `group_reshape`.",
            see="[1, 30, 2, 40] where [1, 2, 30, 40] is expected"),
        Mistake("multiplied in float16",
            edit(".astype(np.float32)", "").edit("scale[..., None]", "scale.astype(np.float16)[..., None]"),
            cause="int8 times float16 is float16 in numpy, and the product loses digits.",
            cure="Multiply by the float32 scales.", see="the dtype float16 where float32 is expected"),
        Mistake("multiplied in float64", edit("np.float32", "float"),
            cause="`astype(float)` makes float64, twice the memory, and a file or a model would have to round it again.",
            cure="Say `np.float32`.", see="the dtype float64 where float32 is expected"),
        Mistake("left in groups", edit("ungroup(groups * scale[..., None])", "groups * scale[..., None]"),
            cause="The weights still have three axes.",
            cure="Put them back into rows with `ungroup`.", see="the shape (1, 2, 2) where (1, 4) is expected"),
    ),
)
