"""Groups put back together into rows."""

import numpy as np

from ...lab import Exercise, Mistake, edit


def ungroup(groups):
    """Groups put back together into rows.

    groups: (out, n_groups, group_size), any dtype, not empty
    ->   (out, n_groups * group_size), the same dtype; a view or a copy

    ungroup(group_reshape(w, group_size)) equals w.
    """
    return groups.reshape(groups.shape[0], -1)


def oracle(groups):
    """One weight after another."""
    return np.array([[x for group in row for x in group] for row in groups.tolist()], groups.dtype)


def cases(random):
    """The shape of the toy, other shapes, integers, one group a row, groups of one, random weights."""
    return [
        (np.arange(32, dtype=np.float32).reshape(4, 2, 4),),
        (np.arange(12, dtype=np.float32).reshape(2, 3, 2),),
        (np.arange(24, dtype=np.int8).reshape(2, 3, 4),),
        (np.array([[[1, 0, 0]], [[2, 3, 0]]], np.float32),),  # zeros are weights, too
        (np.arange(6, dtype=np.float32).reshape(2, 3, 1),),
        (np.arange(6, dtype=np.float32).reshape(1, 3, 2),),
        (np.arange(24, dtype=np.float64).reshape(4, 3, 2).T,),  # the last axis first in memory
        (np.arange(6, dtype=np.int64).reshape(1, 1, 6) << 40,),
        (random.normal(size=(4, 2, 4)).astype(np.float32),),
    ]


EXERCISE = Exercise(
    goal="Put the groups back together into rows: the exact inverse of `group_reshape`.",
    reference=ungroup, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up", may_view=True,
    hints=(
        "Two axes become one. The number of rows stays, and a row gets the weights of all its groups.",
        "`reshape` again. It keeps the order of the numbers, and it works out one length by itself where you write -1.",
    ),
    why="scales that belong to other weights after reloading are a common bug, and this line is where it happens.",
    mistakes=(
        Mistake("transposed inverse", edit("groups.reshape", "groups.transpose(0, 2, 1).reshape"),
            cause="The weights come as if the last two axes were exchanged: first the first weights of all groups of a row, then the second ones.",
            cure="Reshape without a transpose: `group_reshape` moved nothing, so nothing must be moved back.",
            see="the right shape, and [0, 2, 4, 1, 3, 5] where [0, 1, 2, 3, 4, 5] is expected"),
        Mistake("a row for each group", edit("groups.shape[0], -1", "-1, groups.shape[-1]"),
            cause="Each group became a row of its own.",
            cure="The first axis stays: `groups.shape[0]` rows.", see="the shape (6, 2) where (2, 6) is expected"),
        Mistake("rows side by side", edit("groups.reshape(groups.shape[0], -1)", "np.hstack(list(groups))"),
            cause="Each row of the result holds one group of every row: the rows stand side by side.",
            cure="Join the last two axes with a reshape.", see="the shape (3, 4) where (2, 6) is expected"),
        Mistake("group by group", edit("groups.reshape", "groups.transpose(1, 0, 2).reshape"),
            cause="The first groups of all rows are first, then the second groups of all rows.",
            cure="Keep the axes in their order: row, group, weight.",
            see="[0, 1, 6, 7, 2, 3] in the first row, where 2 should follow 1"),
        Mistake("flattened", edit("reshape(groups.shape[0], -1)", "flatten()"),
            cause="All the axes became one.",
            cure="Keep the first axis: `groups.reshape(groups.shape[0], -1)`.",
            see="the shape (12,) where (2, 6) is expected"),
        Mistake("shape of the toy built in", edit("groups.shape[0], -1", "4, 8"),
            cause="The shape is always (4, 8), that of the toy, and other numbers of weights than 32 do not fit it.",
            cure="Take the number of rows from `groups.shape[0]`.",
            see="an error that something cannot be reshaped into (4, 8)"),
    ),
)
