"""Activations in eight bits, a scale for each token."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import Pair, nearest32


def quantize_tokens(x):
    """Activations as 8-bit integers, with a scale for each token.

    x: (tokens, in) float32   ->   (q, scale)
    scale: (tokens, 1) float32, the largest abs(x) of the token / 127, a
        float32 division, even if the scale is as small as 1e-37
    q: (tokens, in) int8: x / scale as a float32 division, rounded to the
        nearest integer, ties to the even one

    The scale of a token of zeros is 0, and so are its integers. No scale is
    rounded to float16: nobody stores it.
    """
    scale = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    divisor = np.where(scale == 0, np.float32(np.inf), scale)
    return np.rint(x / divisor).astype(np.int8), scale


def oracle(x):
    """One number at a time, with Python's own ``round``."""
    scales = [nearest32(max(abs(v) for v in row) / 127) for row in x.tolist()]
    q = [[round(nearest32(v / s)) if s else 0 for v in row] for row, s in zip(x.tolist(), scales)]
    return Pair(np.array(q, np.int8), np.array([[s] for s in scales], np.float32))


def cases(random):
    """Whole steps, ties, a token of zeros before others, one large channel, tiny and huge numbers, a single one, zeros alone, then random tokens."""
    made = [
        [[127, 1, -3], [-254, 4, 6]],
        [[0, 0, 0, 0], [127, 0.5, 1.5, -0.75]],
        [[-63.5, 1, 0.25], [1, 2, 4]],
        [[300, 1, -1, 0.5], [1, -1, 0.5, 0.25], [0.1, 0.3, 0.2, -0.1]],
        [[0.0625, 0.0022145670372992754, 0], [1e-10, 5e-11, 1e-12], [-0.0, 0, 0]],  # a tie in float32; tiny scales
        [[1e-35, -3e-36, 0], [3e38, -1e38, 2e36]],
        [[-2.54]],
        np.zeros((2, 2)),
        random.normal(0, [1, 40, 1, 1, 1], (6, 5)),
    ]
    return [(np.array(x, np.float32),) for x in made]


EXERCISE = Exercise(
    goal="Turn activations into 8-bit integers as they come, each token with its own scale.",
    reference=quantize_tokens, oracle=oracle, cases=cases, minutes=6, difficulty="warm-up", tolerance=0.0,
    hints=(
        "A token is a row of x. For a row of weights you have done the same, in lab 06.",
        "`keepdims=True` keeps the axis of a maximum, so that (tokens, 1) meets (tokens, in). `np.where` can replace a scale of 0 by `np.inf`. Cast to int8 last.",
    ),
    why="no calibration text is needed for this: a token brings its own largest number along.",
    mistakes=(
        Mistake("a scale for each channel", edit("axis=1", "axis=0"),
            cause="The scales are those of the channels: one number for each column.",
            cure="Take the maximum of each row: axis 1.", see="scales of the shape (1, in)"),
        Mistake("one scale for all tokens", edit("np.abs(x).max(axis=1, keepdims=True)", "np.full((len(x), 1), np.abs(x).max())"),
            cause="All tokens have the scale of the largest activation.",
            cure="Take the maximum of each token.", see="the same scale for every token"),
        Mistake("the largest with its sign", edit("np.abs(x).max(axis=1, keepdims=True)", "np.maximum(x.max(axis=1, keepdims=True), 0)"),
            cause="The scale belongs to the largest positive activation; a larger negative one is beyond 127 steps.",
            cure="Take absolute values first.", see="wrong for tokens whose largest activation is negative"),
        Mistake("steps of absmax / 128", edit("np.float32(127)", "np.float32(128)"),
            cause="The scales are absmax / 128, so the largest activation is 128 steps, and int8 ends at 127.",
            cure="Divide by 127.", see="scales slightly too small"),
        Mistake("rounded toward zero", edit("np.rint(x / divisor).astype(np.int8)", "(x / divisor).astype(np.int8)"),
            cause="The fractions were cut off.",
            cure="Round before you cast.", see="about half of the integers one step too close to zero"),
        Mistake("scales as a file would hold them", edit("/ np.float32(127)", "/ np.float32(127)\n    scale = scale.astype(np.float16).astype(np.float32)"),
            cause="The scales were rounded to float16. These scales live only as long as the product is computed.",
            cure="Leave the scales in float32.", see="scales that differ in the fourth significant digit"),
        Mistake("scales without their axis", edit("astype(np.int8), scale", "astype(np.int8), scale[:, 0]"),
            cause="The integers are right, and the scales have the shape (tokens,).",
            cure="Keep the axis: (tokens, 1).", see="scales of the shape (tokens,)"),
        Mistake("no scale below 1e-8 / 127", edit("keepdims=True) /", "keepdims=True).clip(np.float32(1e-8)) /"),
            cause="The largest number of a token was taken to be 1e-8 at least, so tokens of zeros and of tiny numbers get another scale.",
            cure="Leave the scale as it is; only the divisor of a token of zeros must not be 0.",
            see="7.874016e-11 where a scale of 0 is expected"),
        Mistake("divided in float64", edit("np.rint(x / divisor)", "np.rint(x / divisor.astype(np.float64))"),
            cause="The division was done in float64. A quotient that is a tie in float32 is none there.",
            cure="Divide float32 by float32.", see="right nearly everywhere, and one integer beside a tie off by one"),
        Mistake("a scale of 1 for zeros", edit("np.rint(x / divisor).astype(np.int8), scale", "np.rint(x / divisor).astype(np.int8), np.where(scale == 0, np.float32(1), scale)"),
            cause="The scale of a token of zeros is 1.",
            cure="Use another divisor there, and return the scale as it is.", see="1 where 0 is expected, for a token of zeros"),
    ),
)
