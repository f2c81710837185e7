"""Integers, each group measured with its own scale."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import Pair, integer, slices
from .group_reshape import group_reshape
from .group_scales import group_scales
from .group_scales import oracle as scales_oracle
from .ungroup import ungroup


def quantize_per_group(w, group_size):
    """4-bit integers, each group measured with its own scale.

    w: (out, in) float32   ->   (q, scale)
    q: (out, in) int8 in [-7, 7]: w / scale in float32, rounded half to even; 0 where the scale is 0
    scale: (out, in / group_size) float32, rounded to float16
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
    """Whole steps, fractions and ties; scales that float16 changes; scales of 0; random weights."""
    made = [
        ([[7, 1, 70, 10]], 2),
        ([[7, 0.75, -0.75, -7]], 2),
        ([[7, 0.5, 1.5, 2.5], [-0.5, -1.5, -2.5, -7]], 4),
        ([[1.0, 0.3571, 0.25, -1.0]], 4),  # 2.4997 exact steps, 2.5003 rounded ones
        (np.arange(-16, 16).reshape(4, 8), 4),
        ([[1, 2, 0, 0], [1e-9, -1e-9, 3, 4]], 2),
        ([[6e-7, -6e-7, 3e-7, 0.0], [0.0, 1.0, 2.0, 3.0]], 4),  # 1.44 of float16's smallest steps becomes 1: clipped
        (random.normal(0, 0.02, (4, 64)), 16),
    ]
    return [(np.array(w, np.float32), group_size) for w, group_size in made]


EXERCISE = Exercise(
    goal="Turn a matrix into integers from -7 to 7 and a scale for each group.",
    reference=quantize_per_group, oracle=oracle, cases=cases, minutes=10, difficulty="core",
    hints=(
        "Everything is ready: `group_scales`, `group_reshape`, one division, and `ungroup` at the end.",
        "With `groups` of shape (out, groups, group_size), divide by `scale[..., None]`, infinite where the scale is 0; then `np.rint`, `.clip(-7, 7)`, `.astype(np.int8)`, `ungroup`.",
    ),
    why="fifteen levels for a weight, and the model still works: this is the arithmetic of a 4-bit file.",
    mistakes=(
        Mistake("scale rounded late", edit(
                "scale = group_scales(w, group_size)",
                "scale = np.abs(group_reshape(w, group_size)).max(axis=2) / np.float32(7)",
            ).edit("np.int8)), scale", "np.int8)), scale.astype(np.float16).astype(np.float32)"),
            cause="You divided by the exact scale and returned the rounded one, so the integers belong to another scale.",
            cure="Round first: divide by what `group_scales` gives.",
            see="the scales right, and an integer here and there off by one"),
        Mistake("scale never rounded", edit(
                "scale = group_scales(w, group_size)",
                "scale = np.abs(group_reshape(w, group_size)).max(axis=2) / np.float32(7)",
            ),
            cause="The scales still have float32's digits, and the file has room for float16's.",
            cure="Use `group_scales`, which rounds them.", see="scales that differ in the fourth significant digit"),
        Mistake("truncated", edit("np.rint", ""),
            cause="The cast to int8 cuts the fraction off; with so few levels that doubles the error.",
            cure="Call `np.rint` before the cast.", see="0 where 1 is expected for 0.75"),
        Mistake("half rounded up", edit(
                "np.rint(group_reshape(w, group_size) / divisor)",
                "np.floor(group_reshape(w, group_size) / divisor + 0.5)",
            ),
            cause="`floor(x + 0.5)` sends every tie upwards.",
            cure="Use `np.rint`, which sends ties to the even neighbour.", see="1 where 0 is expected for 0.5"),
        Mistake("clipped to -8", edit("-7", "-8"),
            cause="-8 exists in four bits, and a symmetric range leaves it unused, so that w and -w get opposite integers.",
            cure="Clip to [-7, 7].", see="-8 where -7 is expected, in a group of very small weights"),
        Mistake("never clipped", edit(".clip(-7, 7)", ""),
            cause="A scale that was rounded down makes the longest quotient larger than 7, and 8 does not fit in four bits.",
            cure="Clip to [-7, 7] before the cast.", see="integers beyond 7, in a group of very small weights"),
        Mistake("divided by zero", edit("np.where(scale == 0, np.float32(np.inf), scale)", "scale"),
            cause="A group of zeros, or of weights too small for float16, has the scale 0, and dividing by it gives infinity or NaN.",
            cure="Use `np.where(scale == 0, np.float32(np.inf), scale)` as the divisor: anything over infinity is 0.",
            see="7 where 0 is expected for weights near 1e-9, or a warning about a division"),
        Mistake("left in groups", edit("ungroup(q.clip(-7, 7).astype(np.int8))", "q.clip(-7, 7).astype(np.int8)"),
            cause="The integers still have three axes.",
            cure="Put them back into rows with `ungroup`.", see="the shape (1, 2, 2) where (1, 4) is expected"),
        Mistake("put back transposed", edit(
                "ungroup(q.clip(-7, 7).astype(np.int8))",
                "q.clip(-7, 7).astype(np.int8).transpose(0, 2, 1).reshape(w.shape)",
            ),
            cause="The way back swapped two axes, so the integers of different groups are shuffled into each other.",
            cure="Use `ungroup`, the exact inverse of `group_reshape`.", see="the right integers in the wrong places"),
        Mistake("scales not spread over their groups", edit("[..., None]", "")
            .edit("group_reshape(w, group_size)", "w")
            .edit("ungroup(q.clip(-7, 7).astype(np.int8))", "q.clip(-7, 7).astype(np.int8)"),
            cause="(out, in) / (out, groups) has no meaning for numpy: it wants a scale for each weight, or an axis of length 1.",
            cure="Divide the groups, of shape (out, groups, group_size), by `scale[..., None]`.",
            see="an error about operands that could not be broadcast together"),
        Mistake("scales in turns", edit("[..., None]", "")
            .edit("group_reshape(w, group_size) / divisor", "w / np.tile(divisor, group_size)")
            .edit("ungroup(q.clip(-7, 7).astype(np.int8))", "q.clip(-7, 7).astype(np.int8)"),
            cause="`np.tile` lays the scales out as a, b, a, b, and neighbours in a group need a, a, b, b.",
            cure="Divide the groups by `scale[..., None]`, and let numpy do the repeating.",
            see="every second integer far too large or too small"),
    ),
)
