"""Rows cut into groups of neighbours."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import slices


def group_reshape(w, group_size):
    """Rows cut into groups of neighbours.

    w: (out, in)   ->   (out, in / group_size, group_size), the weights in their order

    Raises ValueError if the rows do not divide into groups.
    """
    out, n_in = w.shape
    return w.reshape(out, n_in // group_size, group_size)


def oracle(w, group_size):
    """Group by group, by slicing lists."""
    if w.shape[1] % group_size:
        raise ValueError(f"rows of {w.shape[1]} weights do not divide into groups of {group_size}")
    return np.array([slices(row, group_size) for row in w.tolist()], w.dtype)


def cases(random):
    """Whole groups, rows that do not divide, integers, random weights."""
    return [
        (np.arange(32, dtype=np.float32).reshape(4, 8), 4),
        (np.arange(12, dtype=np.float32).reshape(2, 6), 2),
        (np.arange(24, dtype=np.float32).reshape(4, 6), 4),  # 6 weights do not divide into groups of 4
        (np.arange(24, dtype=np.int8).reshape(2, 12), 3),
        (random.normal(size=(3, 12)).astype(np.float32), 3),
    ]


EXERCISE = Exercise(
    goal="Cut every row into groups of neighbours, without moving a weight, and refuse rows that do not divide.",
    reference=group_reshape, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up", may_view=True,
    hints=(
        "The result has three axes: the row, the group within the row, the weight within the group.",
        "`w.reshape(rows, columns // group_size, group_size)`: for rows that do not divide, numpy refuses by itself.",
    ),
    why="the weights lie in memory in this very order, so the cut costs nothing, and the way back is a reshape too.",
    mistakes=(
        Mistake("groups down the columns",
            edit("return w.reshape(out, n_in // group_size, group_size)", "return w.T.reshape(n_in, -1, group_size)"),
            cause="You transposed first, so a group holds weights of different rows, which belong to different outputs.",
            cure="Reshape w itself; neighbours in a row stay neighbours in a group.",
            see="numbers from different rows side by side, such as [0, 8, 16, 24] in the toy of this page"),
        Mistake("size and count swapped", edit("n_in // group_size, group_size", "group_size, n_in // group_size"),
            cause="The number of groups and the size of a group changed places.",
            cure="The last axis is the weights of one group: its length is `group_size`.",
            see="the shape (2, 2, 3) where (2, 3, 2) is expected"),
        Mistake("every n-th weight",
            edit("n_in // group_size, group_size)", "group_size, n_in // group_size).transpose(0, 2, 1)"),
            cause="The weights were dealt out like cards: the shape is right, and neighbours fell into different groups.",
            cure="Reshape straight to (out, groups, group_size), without a transpose.",
            see="the right shape, and [0, 3] in a group where [0, 1] is expected"),
        Mistake("one long list of groups", edit("out, n_in // group_size, group_size", "-1, group_size"),
            cause="`reshape(-1, group_size)` forgets which row a group came from, and lets groups run over a row's end.",
            cure="Keep the rows as the first of three axes.", see="the shape (6, 2) where (2, 3, 2) is expected"),
        Mistake("size of the toy built in", edit("n_in // group_size, group_size", "-1, 4"),
            cause="The 4 of the toy stands in your code, so other group sizes are cut in the same way.",
            cure="Use the argument `group_size`.", see="right for the toy, and wrong for groups of 2 and 3"),
        Mistake("groups across rows", edit("reshape(out", "reshape(-1"),
            cause="With -1 for the rows numpy found a shape that fits, in which groups begin in one row and end in the next.",
            cure="Say how many rows there are: `w.shape[0]`.",
            see="a result for rows of 6 in groups of 4, which must be refused"),
        Mistake("tail dropped", edit("return w", "return w[:, : n_in // group_size * group_size]"),
            cause="The weights after the last whole group were cut off without a word.",
            cure="Refuse rows that do not divide: let the reshape raise its ValueError.",
            see="a result for rows of 6 in groups of 4, with two weights of each row missing"),
    ),
)
