"""Rows cut into groups of neighbours."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import slices


def group_reshape(w, group_size):
    """Rows cut into groups of neighbours.

    w: (out, in), any dtype, in any order in memory, not empty; group_size:
        1 or more
    ->   (out, in / group_size, group_size), the same dtype, the weights in
         their order; a view or a copy

    The first group of a row holds its first group_size weights. Raises
    ValueError if `in` is not a multiple of group_size.
    """
    out, n_in = w.shape
    return w.reshape(out, n_in // group_size, group_size)


def oracle(w, group_size):
    """Group by group, by slicing lists."""
    if w.shape[1] % group_size:
        raise ValueError(f"rows of {w.shape[1]} weights do not divide into groups of {group_size}")
    return np.array([slices(row, group_size) for row in w.tolist()], w.dtype)


def cases(random):
    """Whole groups, rows that do not divide or are too short, integers, one group a row, groups of one, random weights."""
    return [
        (np.arange(32, dtype=np.float32).reshape(4, 8), 4),
        (np.arange(12, dtype=np.float32).reshape(2, 6), 2),
        (np.arange(24, dtype=np.float32).reshape(4, 6), 4),  # 6 weights do not divide into groups of 4
        (np.arange(24, dtype=np.int8).reshape(2, 12), 3),
        (np.arange(8, dtype=np.float32).reshape(2, 4), 8),  # a row is shorter than a group
        (np.arange(8, dtype=np.float32).reshape(2, 4), 4),
        (np.arange(8, dtype=np.float32).reshape(2, 4), 1),
        (np.arange(20, dtype=np.float64).reshape(10, 2).T, 5),  # column after column in memory
        (np.arange(6, dtype=np.int64).reshape(1, 6) << 40, 2),
        (random.normal(size=(4, 8)).astype(np.float32), 4),  # the shapes of the first case
    ]


def traits(w, group_size):
    """What is special about the rows."""
    out, n_in = w.shape
    return {
        "a row is shorter than a group": n_in < group_size,
        "a row is longer than a group, and no multiple of it": n_in > group_size and n_in % group_size > 0,
        "a row is one group": n_in == group_size,
        "a row is longer than a group": n_in > group_size,
        "a group is one weight": group_size == 1,
        "a row has as many groups as a group has weights": n_in == group_size * group_size,
        "the number of rows is no multiple of `group_size`": out % group_size > 0,
        "`w` does not lie in memory row after row": not w.flags.c_contiguous,
        "`w` is float64 or int64": w.dtype in (np.float64, np.int64),
    }


EXERCISE = Exercise(
    goal="Cut every row into groups of neighbours, without moving a weight, and refuse rows that do not divide.",
    reference=group_reshape, oracle=oracle, cases=cases, traits=traits, minutes=5, difficulty="warm-up", may_view=True,
    hints=(
        "The result has three axes: the row, the group within the row, the weight within the group.",
        "`w.shape` has the lengths of the axes, and the method `reshape` takes new ones. It keeps the order of the numbers, and raises a ValueError if their count does not fit.",
    ),
    why="the weights are in memory in this order already, so the cut costs nothing. The way back is a reshape too.",
    mistakes=(
        Mistake("groups down the columns",
            edit("return w.reshape(out, n_in // group_size, group_size)", "return w.T.reshape(n_in, -1, group_size)"),
            cause="The groups are cut out of the columns. The weights of a column are in different rows, which belong to different outputs.",
            cure="Reshape w itself; neighbours in a row stay neighbours in a group.",
            see="numbers from different rows side by side, such as [0, 8, 16, 24] in the toy of this page"),
        Mistake("size and count swapped", edit("n_in // group_size, group_size", "group_size, n_in // group_size"),
            cause="The number of groups and the size of a group are exchanged.",
            cure="The last axis is the weights of one group: its length is `group_size`.",
            see="the shape (2, 2, 3) where (2, 3, 2) is expected"),
        Mistake("every n-th weight",
            edit("n_in // group_size, group_size)", "group_size, n_in // group_size).transpose(0, 2, 1)"),
            cause="The shape is right, but with n groups in a row, the first group has every n-th weight of the row.",
            cure="Reshape straight to (out, groups, group_size), without a transpose.",
            see="the right shape, and [0, 3] in a group where [0, 1] is expected"),
        Mistake("one long list of groups", edit("out, n_in // group_size, group_size", "-1, group_size"),
            cause="The result is one list of groups for all rows. The axis of the rows is missing, and a group can begin in one row and end in the next.",
            cure="Keep the rows as the first of three axes.", see="the shape (6, 2) where (2, 3, 2) is expected"),
        Mistake("size of the toy built in", edit("n_in // group_size, group_size", "-1, 4"),
            cause="Every group has 4 weights, as in the toy.",
            cure="Use the argument `group_size`.", see="right for the toy, and wrong for groups of 2 and 3"),
        Mistake("groups across rows", edit("reshape(out", "reshape(-1"),
            cause="Some matrices whose rows do not divide are accepted. Then a group begins in one row and ends in the next.",
            cure="Give the number of rows yourself: `w.shape[0]`.",
            see="a result for rows of 6 in groups of 4, which must be refused"),
        Mistake("tail dropped", edit("return w", "return w[:, : n_in // group_size * group_size]"),
            cause="The weights after the last whole group are dropped, and no error says so.",
            cure="Refuse rows that do not divide: let the reshape raise its ValueError.",
            see="a result for rows of 6 in groups of 4, with two weights of each row missing"),
    ),
)
