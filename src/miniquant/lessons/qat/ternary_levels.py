"""Levels of -1, 0 and 1, and the mean size of a block as its scale."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest16, nearest32


def ternary_levels(w):
    """Levels of -1, 0 and 1 for each block of weights, and its scale.

    w: (n, k) float32, a block in each row; the mean size of a block is 0,
        or from 0.001 to 1000
    ->   levels: (n, k) int8; scale: (n, 1) float16

    The scale of a block is the mean size of its weights, rounded to
    float16. The levels are w / that float16 scale, in float32 or float64,
    rounded half to even and clipped to -1 … 1. A block of zeros has scale 0
    and levels of 0.
    """
    scale = np.abs(w).mean(axis=1, keepdims=True).astype(np.float16)
    divisor = np.where(scale > 0, scale, 1).astype(np.float32)  # (n, 1)
    levels = np.rint(w / divisor).clip(-1, 1).astype(np.int8)
    return levels, scale


def oracle(w):
    """Weight by weight, in Python's own numbers."""
    levels, scales = [], []
    for row in w.tolist():
        scale = nearest16(nearest32(math.fsum(abs(x) for x in row) / len(row)))
        scales.append([scale])
        levels.append([max(-1, min(1, round(x / scale))) if scale else 0 for x in row])
    return np.array(levels, np.int8), np.array(scales, np.float16)


def cases(random):
    """One block, a half, a large weight, zeros, several blocks of several sizes, a little above a half of a small scale, drawn ones."""
    made = [
        [[1, -1, 2, 0]],
        [[4, 0.5, -0.5, -1]],
        [[0.5, -0.5, 2, 1]],
        [[16, 0, 0, 0]],
        [[0, -0.0, 0, 0]],
        [[3, -1, 0, 0], [0.03, 0.01, -0.02, 0.02], [0, 0, 0, 0], [-300, 100, 100, 100]],
        [[-0.7], [2], [0]],
        [[0.5001, 1, 1, 1.5015]],  # the scale is 1.0004, as float16 it is 1
        [[x / 512 for x in (0.500001, 1, 1, 1.499999)]],
        [[16, *[0] * 255], [-200_000, *[0] * 255]],  # 256 scales: beyond int8 before it is clipped
    ]
    drawn = [random.normal(0, 0.05, (6, 48)), random.laplace(0, 0.1, (5, 256)), random.normal(0, 1, (8, 32)) * np.exp2(random.integers(-6, 6, (8, 1)))]
    return [(np.array(w, np.float32),) for w in (*made, *drawn)]


EXERCISE = Exercise(
    goal="Round each block of weights to -1, 0 and 1 times one scale.",
    reference=ternary_levels, oracle=oracle, cases=cases, minutes=6, difficulty="warm-up",
    hints=(
        "First the scale, as the file will hold it, then the levels. A block of zeros must not be divided by 0, so give it another divisor.",
        "`mean(axis=1, keepdims=True)` gives a column, (n, 1). `np.where` can put a 1 in place of a scale of 0; `np.rint` and `clip` make levels.",
    ),
    why="three levels take 1.6 bits, and a product with them needs no multiplication.",
    mistakes=(
        Mistake("the largest size", edit("np.abs(w).mean(", "np.abs(w).max("),
            cause="The scale is the largest size of the block. Then every weight below half of it becomes 0.",
            cure="Take the mean of the sizes.", see="scales that are too large, and many zeros"),
        Mistake("the mean with signs", edit("np.abs(w).mean(axis=1, keepdims=True)", "np.abs(w.mean(axis=1, keepdims=True))"),
            cause="Weights of both signs cancel in their mean.",
            cure="Take `np.abs` of the weights first.", see="scales that are too small, and few zeros"),
        Mistake("root mean square", edit("np.abs(w).mean(axis=1, keepdims=True)", "np.sqrt(np.square(w).mean(axis=1, keepdims=True))"),
            cause="The scale is the root of the mean square.",
            cure="Take the mean of the sizes.", see="scales that are a little too large"),
        Mistake("one scale for all", edit("np.abs(w).mean(axis=1, keepdims=True)", "np.full((len(w), 1), np.abs(w).mean())"),
            cause="All blocks have the same scale.",
            cure="Take the mean of each row, `axis=1`.", see="right for one block"),
        Mistake("not clipped", edit(".clip(-1, 1)", ""),
            cause="Weights far from 0 have levels of 2 and more.",
            cure="Clip to -1 … 1.", see="2 where 1 is expected"),
        Mistake("the signs", edit("np.rint(w / divisor).clip(-1, 1)", "np.sign(w)"),
            cause="Every weight that is not 0 became -1 or 1. Small ones must become 0.",
            cure="Divide by the scale and round.", see="no zeros"),
        Mistake("halves away from zero", edit("np.rint(w / divisor)", "np.trunc(w / divisor + np.copysign(0.5, w))"),
            cause="A half went away from zero; `np.rint` takes it to the even side, here to 0.",
            cure="Use `np.rint`.", see="1 where a weight is exactly half of the scale"),
        Mistake("cut off", edit("np.rint(w / divisor)", "np.trunc(w / divisor)"),
            cause="The digits after the point were cut off.",
            cure="Round, with `np.rint`.", see="zeros for weights below the scale"),
        Mistake("the scale rounded last", edit("keepdims=True).astype(np.float16)", "keepdims=True)").edit("return levels, scale", "return levels, scale.astype(np.float16)"),
            cause="The levels were made with the scale before it was rounded to float16.",
            cure="Round the scale first, then divide by it.", see="right scales, and a level that is off where a weight is near a half"),
        Mistake("float32 scale", edit(".astype(np.float16)", ""),
            cause="The scale is float32.",
            cure="Convert it with `.astype(np.float16)`.", see="the dtype float32"),
        Mistake("a scale of 1 for zeros", edit("return levels, scale", "return levels, divisor.astype(np.float16)"),
            cause="The divisor was returned, which is 1 for a block of zeros.",
            cure="Return the scale.", see="1 as the scale of a block of zeros"),
        Mistake("weights instead of levels", edit("return levels, scale", "return (levels * scale.astype(np.float32)), scale"),
            cause="The levels were multiplied by the scale.",
            cure="Return the levels themselves, as int8.", see="the dtype float32"),
        Mistake("scale first", edit("return levels, scale", "return scale, levels"),
            cause="The scale came first.",
            cure="Return the levels first.", see="two arrays of unexpected shapes"),
    ),
)
