"""A scale moves from the inputs of proj into the rows of v."""

import numpy as np

from ...lab import Exercise, Mistake, edit


def fold_into_value(qkv_weight, qkv_bias, proj_weight, scale):
    """Divide what reaches proj by a scale for each channel, and let proj's
    weights make up for it.

    qkv_weight: (3 × d, d) float32, the rows of q, then k, then v; qkv_bias:
        (3 × d,) float32
    proj_weight: (d, d) float32; scale: (d,) float32, all above 0
    ->   qkv_weight, qkv_bias and proj_weight as new float32 arrays, each
         number right to 0.00001; what proj gives stays the same, and so
         do q and k
    """
    d = len(scale)
    divisor = np.concatenate([np.ones(2 * d, np.float32), scale])  # (3 d,): q and k stay
    return qkv_weight / divisor[:, None], qkv_bias / divisor, proj_weight * scale


def oracle(qkv_weight, qkv_bias, proj_weight, scale):
    """Number by number."""
    s, d = scale.tolist(), len(scale)
    rows = [[x / (s[i - 2 * d] if i >= 2 * d else 1) for x in row] for i, row in enumerate(qkv_weight.tolist())]
    bias = [x / (s[i - 2 * d] if i >= 2 * d else 1) for i, x in enumerate(qkv_bias.tolist())]
    proj = [[x * s[c] for c, x in enumerate(row)] for row in proj_weight.tolist()]
    return np.float32(rows), np.float32(bias), np.float32(proj)


def cases(random):
    """Whole numbers and powers of two as scales, in four widths, then other scales and signs."""

    def drawn(d):
        shapes = (3 * d, d), (3 * d,), (d, d)
        numbers = (random.integers(1, 10, shape).astype(np.float32) for shape in shapes)
        return (*numbers, random.choice([0.25, 0.5, 2, 4], d).astype(np.float32))

    ones = np.ones((6, 2), np.float32), np.ones(6, np.float32), np.ones((2, 2), np.float32)
    same = np.float32([[3], [5], [2]]), np.zeros(3, np.float32), np.float32([[4]]), np.ones(1, np.float32)  # nothing changes, and the arrays are new
    *parts, _ = drawn(3)
    signs = [np.float32(part) * random.choice(np.float32([-1, 1]), part.shape) for part in parts]
    uneven = (*signs, np.array([1, 0.3, 2.9], np.float32))  # no powers of two, numbers of both signs
    return [(*ones, np.array([2, 4], np.float32)), same, drawn(3), drawn(4), uneven]


EXERCISE = Exercise(
    goal="Divide v by a scale for each of its channels, and let proj make up for it.",
    reference=fold_into_value, oracle=oracle, cases=cases, minutes=6, difficulty="core", tolerance=1e-5,
    hints=(
        "A channel of v is an output of qkv, so it is a row there; for proj it is an input, so it is a column. q and k stay.",
        "Work on copies, or make a divisor of length 3 × d that is 1 where nothing changes. `[:, None]` makes a column of it, for use row by row.",
    ),
    why="the division costs nothing at run time, because v's rows already contain it.",
    mistakes=(
        Mistake("the bias of v as it was", edit("qkv_bias / divisor", "qkv_bias.copy()"),
            cause="v is weight × x + bias, and only its first part was divided.",
            cure="Divide the last third of qkv's bias, too.", see="the bias unchanged, everything else right"),
        Mistake("q instead of v", edit("[np.ones(2 * d, np.float32), scale]", "[scale, np.ones(2 * d, np.float32)]"),
            cause="The first third of qkv's rows was divided, which are the queries; the values are the last third.",
            cure="Divide the rows from 2 × d on.",
            see="the first third of qkv's rows divided where the last is expected"),
        Mistake("k instead of v",
            edit("[np.ones(2 * d, np.float32), scale]", "[np.ones(d, np.float32), scale, np.ones(d, np.float32)]"),
            cause="The middle third of qkv's rows was divided, which are the keys; the values are the last third.",
            cure="Divide the rows from 2 × d on.",
            see="the middle third of qkv's rows divided where the last is expected"),
        Mistake("all three of q, k and v", edit("[np.ones(2 * d, np.float32), scale]", "[scale, scale, scale]"),
            cause="Queries and keys were divided as well, which changes whom each position attends to.",
            cure="Leave the first two thirds of the rows alone.", see="all rows of qkv divided"),
        Mistake("columns of v instead of rows",
            edit("qkv_weight / divisor[:, None]", "np.concatenate([qkv_weight[: 2 * d], qkv_weight[2 * d :] / scale])"),
            cause="v's columns were divided. They are v's inputs; what reaches proj are v's outputs, and those are rows.",
            cure="Divide row by row.", see="the last third of qkv's weight wrong, everything else right"),
        Mistake("the other way round", edit("qkv_weight / divisor[:, None], qkv_bias / divisor, proj_weight * scale", "qkv_weight * divisor[:, None], qkv_bias * divisor, proj_weight / scale"),
            cause="proj gives the same, but v became larger and proj's columns smaller.",
            cure="Divide v and multiply proj.", see="v's rows multiplied, proj divided"),
        Mistake("v as it was", edit("qkv_weight / divisor[:, None], qkv_bias / divisor", "qkv_weight.copy(), qkv_bias.copy()"),
            cause="proj's columns were multiplied, and nothing before them was divided.",
            cure="Divide the rows of v by the same scale.", see="qkv unchanged, proj right"),
        Mistake("proj as it was", edit("proj_weight * scale", "proj_weight.copy()"),
            cause="v was divided, and nothing makes up for it.",
            cure="Multiply proj's columns by the same scale.", see="qkv right, proj unchanged"),
        Mistake("rows of proj instead of columns", edit("proj_weight * scale", "proj_weight * scale[:, None]"),
            cause="proj's rows were multiplied. Those are its outputs; its inputs are columns.",
            cure="Multiply proj column by column.", see="qkv right, proj wrong"),
    ),
)
