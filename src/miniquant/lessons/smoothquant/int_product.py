"""A layer in integers."""

import operator

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest32


def int_product(q_x, scale_x, q_w, scale_w):
    """What a layer computes, from integers: all products are added up in
    int32, and only the sums become float32.

    q_x: (tokens, in) int8, scale_x: (tokens, 1) float32; q_w: (out, in)
        int8, scale_w: (out, 1) float32
    ->   (tokens, out) float32: each sum times the scale of its token and
         the scale of its row of weights, in any order, right to 1e-5
    """
    total = q_x.astype(np.int32) @ q_w.astype(np.int32).T  # (tokens, out)
    return total.astype(np.float32) * scale_x * scale_w.T


def oracle(q_x, scale_x, q_w, scale_w):
    """One product at a time, in Python's integers."""
    found = []
    for row, s in zip(q_x.tolist(), scale_x[:, 0].tolist()):
        sums = [sum(map(operator.mul, row, weights)) for weights in q_w.tolist()]
        found.append([nearest32(total * s * t) for total, t in zip(sums, scale_w[:, 0].tolist())])
    return np.array(found, np.float32)


def cases(random):
    """Small integers, sums beyond int8 and int16, scales of 0 beside them, square shapes, random layers, the integer -128, a long row."""

    def drawn(tokens, out, width, top=127):
        q = [random.integers(-top, top + 1, (n, width)).astype(np.int8) for n in (tokens, out)]
        scales = [np.exp2(random.integers(-8, 2, (n, 1))).astype(np.float32) for n in (tokens, out)]
        return q[0], scales[0], q[1], scales[1]

    def made(q_x, scale_x, q_w, scale_w):
        return (
            *(np.array(q_x, np.int8), np.array(scale_x, np.float32)[:, None]),
            *(np.array(q_w, np.int8), np.array(scale_w, np.float32)[:, None]),
        )

    long = np.repeat(np.int8([127, -127]), 2**17)
    long[0] = 126
    return [
        made([[2, 3]], [0.5], [[1, -1], [4, 2]], [2, 0.25]),
        made([[100, 100]], [0.5], [[100, -3], [100, 100]], [0, 0.125]),  # 20,000: beyond int8
        made([[127, 127, 127], [0, 0, 0], [1, 2, 3]], [1, 0, 0.5], [[127, 127, 127], [-1, 0, 1]], [0.5, 4]),  # beyond int16
        made([[1, 2], [3, 4]], [1, 8], [[1, 0], [0, 1]], [2, 0.5]),
        drawn(3, 5, 16),
        drawn(4, 4, 60),
        drawn(2, 3, 9, top=7),
        made([[-128, -128], [5, -128]], [0.003, 0.001], [[-128, -128], [7, -128]], [0.01, 0.0007]),
        made([long], [1], [abs(long)], [1]),  # the sums grow beyond 2**24, and come back to a small odd number
    ]


EXERCISE = Exercise(
    goal="Multiply integers with integers, add up in 32 bits, and bring the scales in at the end.",
    reference=int_product, oracle=oracle, cases=cases, minutes=7, difficulty="core", tolerance=1e-5,
    hints=(
        "Two scales belong to each sum, and neither depends on the input channel: so they can wait until the sum is complete.",
        "numpy adds up in the type of its arrays, so `astype` comes before `@`. The scales of the rows of weights must lie along axis 1: `.T`.",
    ),
    why="this is what a processor's 8-bit instructions do: integers in, a 32-bit sum, two scales at the end.",
    mistakes=(
        Mistake("sums in int8", edit("q_x.astype(np.int32) @ q_w.astype(np.int32).T", "q_x @ q_w.T"),
            cause="The sums are what is left of them in eight bits: everything beyond -128 … 127 has wrapped around.",
            cure="Cast to int32 before you multiply.", see="right for small sums, wrong beyond 127"),
        Mistake("sums in int16", edit("q_x.astype(np.int32) @ q_w.astype(np.int32).T", "q_x.astype(np.int16) @ q_w.astype(np.int16).T"),
            cause="The sums are what is left of them in 16 bits: everything beyond -32,768 … 32,767 has wrapped around.",
            cure="Cast to int32.", see="right for sums up to 32,767"),
        Mistake("sums in float32", edit("q_x.astype(np.int32) @ q_w.astype(np.int32).T", "q_x.astype(np.float32) @ q_w.astype(np.float32).T"),
            cause="The sums were added up in float32, which has 24 bits: beyond 2**24 it skips integers.",
            cure="Cast to int32 before you multiply.", see="right for short rows, a little off for long ones"),
        Mistake("without the scales of the weights", edit(" * scale_w.T", ""),
            cause="Each sum was multiplied by the scale of its token alone.",
            cure="Multiply by the scale of the row of weights, too.", see="right where that scale is 1"),
        Mistake("without the scales of the tokens", edit(" * scale_x", ""),
            cause="Each sum was multiplied by the scale of its row of weights alone.",
            cure="Multiply by the scale of the token, too.", see="right where that scale is 1"),
        Mistake("the scales of the weights by token", edit("scale_w.T", "scale_w"),
            cause="The scale of row i of the weights was used for token i.",
            cure="Lay the scales of the weights along axis 1.", see="wrong numbers, or an error about shapes"),
        Mistake("the sums as they are", edit("total.astype(np.float32) * scale_x * scale_w.T", "total"),
            cause="The sums were returned without their scales.",
            cure="Multiply by both scales.", see="whole numbers"),
        Mistake("outputs by tokens", edit("* scale_x * scale_w.T", "* scale_x * scale_w.T).T").edit("total.astype", "(total.astype"),
            cause="The result has a row for each output and a column for each token.",
            cure="Tokens are rows.", see="the shape (out, tokens)"),
    ),
)
