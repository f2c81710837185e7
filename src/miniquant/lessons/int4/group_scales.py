"""One scale for every group."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import slices, stored_scale
from .group_reshape import group_reshape


def group_scales(w, group_size):
    """A scale for every group, for integers from -7 to 7.

    w: (out, in) float32   ->   (out, in / group_size) float32, already rounded to float16
    """
    absmax = np.abs(group_reshape(w, group_size)).max(axis=2)  # (out, groups)
    scale = absmax / np.float32(7)
    return scale.astype(np.float16).astype(np.float32)  # what the file will hold


def oracle(w, group_size):
    """Group by group, with Python's own numbers."""
    return np.array([[stored_scale(group, 7) for group in slices(row, group_size)] for row in w.tolist()], np.float32)


def cases(random):
    """Whole scales, the farthest weight negative, scales that float16 changes, groups of one, random weights."""
    made = [
        ([[7, 1, 2, 14], [21, 0, 0, 28]], 2),
        ([[1, -7, 2, -3], [0, 0, -14, 5]], 2),
        (np.arange(32).reshape(4, 8), 4),
        ([[1.0, 0.5, 0.3, 0.2], [0.2, 0.7, 0.6, 0.1]], 1),
        (random.normal(0, 0.02, (3, 12)), 4),
    ]
    return [(np.array(w, np.float32), group_size) for w, group_size in made]


EXERCISE = Exercise(
    goal="Give every group a scale of its own, for integers from -7 to 7, rounded as the file will hold it.",
    reference=group_scales, oracle=oracle, cases=cases, minutes=10, difficulty="core",
    hints=(
        "Cut w with `group_reshape` first; the maximum then runs along the last axis.",
        "`np.abs(groups).max(axis=2)` has the shape (out, groups); divide it by 7 and round it to float16 and back.",
    ),
    why="a long weight now costs precision to its own group only; the rest of the row does not notice.",
    mistakes=(
        Mistake("divided by 8", edit("float32(7)", "float32(8)"),
            cause="Four bits reach down to -8 but up to 7 only, so a positive absmax would land on 8, which does not exist.",
            cure="Divide by 7.", see="scales that are 7/8 of what is expected"),
        Mistake("from minimum to maximum over 15", edit(
                "np.abs(group_reshape(w, group_size)).max(axis=2)", "np.ptp(group_reshape(w, group_size), axis=2)"
            ).edit("float32(7)", "float32(15)"),
            cause="(max - min) / 15 is the scale of asymmetric quantization, which also stores a minimum or a zero point.",
            cure="Use the largest absolute value and 7.", see="a scale that depends on both ends of the group"),
        Mistake("divided by 127", edit("float32(7)", "float32(127)"),
            cause="127 is the range of 8 bits.",
            cure="Four bits have 7 steps on either side of zero.", see="scales about eighteen times too small"),
        Mistake("signed maximum", edit("np.abs", ""),
            cause="A negative weight that lies farther from zero than all others was not seen.",
            cure="Take `np.abs` before the maximum.",
            see="a scale too small for groups whose longest weight is negative"),
        Mistake("maximum across the groups", edit("axis=2", "axis=1"),
            cause="`axis=1` compares the first weights of all groups, then the second ones, and so on.",
            cure="The weights of a group lie along the last axis: use `axis=2`.",
            see="as many scales in a row as a group has weights"),
        Mistake("scale of the whole row",
            edit("max(axis=2)", "max(axis=(1, 2), keepdims=True)[:, :, 0].repeat(w.shape[1] // group_size, axis=1)"),
            cause="All groups of a row got the same scale, so the long weight still costs everybody.",
            cure="Take the maximum within each group, after the reshape.", see="equal numbers along each row"),
        Mistake("scale never rounded", edit(".astype(np.float16).astype(np.float32)", ""),
            cause="The scales still have float32's digits, and the file has room for float16's.",
            cure="Round them: `.astype(np.float16).astype(np.float32)`.",
            see="scales that differ in the fourth significant digit"),
        Mistake("left in float16", edit(".astype(np.float32)", ""),
            cause="The scales were rounded and not converted back, so what is computed from them is rounded again.",
            cure="Add `.astype(np.float32)`.", see="the dtype float16 where float32 is expected"),
        Mistake("an axis too many", edit("axis=2", "axis=2, keepdims=True"),
            cause="`keepdims=True` leaves an axis of length 1 at the end, and the file stores (out, groups).",
            cure="Leave `keepdims` out here, and add the axis where you divide.",
            see="the shape (2, 2, 1) where (2, 2) is expected"),
    ),
)
