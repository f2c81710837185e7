"""One scale for every group."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import slices, stored_scale
from .group_reshape import group_reshape


def group_scales(w, group_size):
    """A scale for every group, for integers from -7 to 7: the absmax of the
    group divided by 7 in float32, then rounded to float16.

    w: (out, in) float32, not empty; `in` is a multiple of group_size
    ->   (out, in / group_size) float32

    The scales are rounded to float16 and held in float32, as in lab 06;
    none is too large for float16. A group of zeros has scale 0.
    """
    absmax = np.abs(group_reshape(w, group_size)).max(axis=2)  # (out, groups)
    scale = absmax / np.float32(7)
    return scale.astype(np.float16).astype(np.float32)  # what the file will hold


def oracle(w, group_size):
    """Group by group, with Python's own numbers."""
    return np.array([[stored_scale(group, 7) for group in slices(row, group_size)] for row in w.tolist()], np.float32)


def cases(random):
    """Whole scales, the farthest weight negative, scales that float16 changes, tiny weights, groups of one, random weights."""
    ties = 7 * (1 + (np.arange(680, 720).reshape(2, 20) + 0.5) / 1024)
    made = [
        ([[7, 1, 2, 14], [21, 0, 0, 28]], 2),
        ([[1, -7, 2, -3], [0, 0, 0, 0], [-14, 5, 0, 0]], 2),  # zeros after another row, and after another group
        (np.arange(32).reshape(4, 8), 4),
        (np.arange(24).reshape(8, 3).T ** 2, 4),  # column after column in memory
        ([[1.0, -0.5, 0.3, 0.2], [0.2, 0.7, -0.6, 0.1]], 2),  # of the same shape as the first
        ([[1.0, -0.5, 0.3, 0.2], [0.2, 0.7, -0.9, 0.1]], 4),
        ([[0, 0, 1e-9, -1e-9, 6e-7, -6e-7, 3e-7, -1e-7]], 2),  # scales of 0 and of float16's smallest number, rounded down and up to it
        ([[5, 1, -4, 3, 2, -6]], 2),  # more groups than weights in a group
        ([[7 * (1 + k / 2048) for k in range(1, 9)], [7 * (1.3 + k / 2048) for k in range(8)]], 1),
        (ties, 1),  # the scales are halfway between two float16; w * (1 / 7) misses some
        ([[420000, 1, 7 * 65504, -7 * 1000.5]], 2),  # large scales
        (random.normal(0, 0.02, (3, 12)) * np.repeat([1, 30, 1], 4), 4),  # a large group among small ones
    ]
    return [(np.array(w, np.float32), group_size) for w, group_size in made]


EXERCISE = Exercise(
    goal="Give every group its own scale, for integers from -7 to 7, rounded as the file will hold it.",
    reference=group_scales, oracle=oracle, cases=cases, minutes=10, difficulty="core",
    hints=(
        "The rule is that of `channel_scales`. Only the stretch of weights is shorter: there is one maximum for each group.",
        "`group_reshape` gives three axes, and the weights of a group are along the last one, axis 2. Call `astype` twice to round.",
    ),
    why="a large weight now costs precision in its own group only. The rest of the row keeps its small steps.",
    mistakes=(
        Mistake("divided by 8", edit("float32(7)", "float32(8)"),
            cause="Four bits reach from -8 to 7. With absmax / 8, a weight of +absmax would get 8, which they do not have.",
            cure="Divide by 7.", see="scales that are 7/8 of what is expected"),
        Mistake("from minimum to maximum over 15", edit(
                "np.abs(group_reshape(w, group_size)).max(axis=2)", "np.ptp(group_reshape(w, group_size), axis=2)"
            ).edit("float32(7)", "float32(15)"),
            cause="(max - min) / 15 is the scale of asymmetric quantization, which also stores a minimum or a zero point.",
            cure="Use the largest absolute value and 7.", see="a scale that depends on both ends of the group"),
        Mistake("divided by 127", edit("float32(7)", "float32(127)"),
            cause="127 is the largest integer of 8 bits. Here the largest is 7.",
            cure="Four bits have 7 steps on either side of zero.", see="scales about eighteen times too small"),
        Mistake("signed maximum", edit("np.abs", ""),
            cause="The scale comes from the largest weight. A negative weight may be farther from zero.",
            cure="Take `np.abs` before the maximum.",
            see="a scale too small for groups whose weight farthest from zero is negative"),
        Mistake("maximum across the groups", edit("axis=2", "axis=1"),
            cause="In each row, the maximum is taken over the first weights of its groups, then over the second ones, and so on.",
            cure="The weights of a group are along the last axis: use `axis=2`.",
            see="as many scales in a row as a group has weights"),
        Mistake("scale of the whole row",
            edit("max(axis=2)", "max(axis=(1, 2), keepdims=True)[:, :, 0].repeat(w.shape[1] // group_size, axis=1)"),
            cause="All groups of a row got the same scale, so one large weight makes the steps of all groups large.",
            cure="Take the maximum within each group, after the reshape.", see="equal numbers along each row"),
        Mistake("scale never rounded", edit(".astype(np.float16).astype(np.float32)", ""),
            cause="The scales still have float32's digits. The file has room for float16's only.",
            cure="Round them: `.astype(np.float16).astype(np.float32)`.",
            see="scales that differ in the fourth significant digit"),
        Mistake("left in float16", edit(".astype(np.float32)", ""),
            cause="The scales are still float16. An int8 times such a scale is a float16 again, with fewer digits.",
            cure="Add `.astype(np.float32)`.", see="the dtype float16 where float32 is expected"),
        Mistake("an axis too many", edit("axis=2", "axis=2, keepdims=True"),
            cause="There is an axis of length 1 at the end. The file stores (out, groups).",
            cure="Leave `keepdims` out here, and add the axis where you divide.",
            see="the shape (2, 2, 1) where (2, 2) is expected"),
        Mistake("only divided by 15",
            edit("float32(7)", "float32(15)"),
            cause="15 is the number of levels. From zero to the last level there are 7 steps.",
            cure="Divide by 7.",
            see="scales about half of what is expected"),
        Mistake("rounded before the division",
            edit("scale = absmax / np.float32(7)", "scale = absmax").edit(".astype(np.float32)", ".astype(np.float32) / np.float32(7)"),
            cause="The scales are quotients of a rounded absmax. Such a quotient need not be a float16, and an absmax beyond float16 becomes infinite.",
            cure="Divide first, then round the quotient.",
            see="scales that differ in the fourth significant digit"),
        Mistake("never zero",
            edit("absmax / np.float32(7)", "np.maximum(absmax / np.float32(7), np.float32(1e-6))"),
            cause="The scale is never 0. Tiny weights, and groups of zeros, have a scale that is too large.",
            cure="Return the scale 0 where it is 0.",
            see="a small number where 0 is expected"),
        Mistake("mean instead of maximum",
            edit("max(axis=2)", "mean(axis=2)"),
            cause="The mean distance from zero is shorter than the largest one, unless all of a group are equal.",
            cure="Take the maximum of each group.",
            see="scales that are too small"),
    ),
)
