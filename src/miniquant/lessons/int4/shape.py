"""The exercises of lab 05 on groups: cut rows into them, put them together again, count what they cost."""

from __future__ import annotations

import numpy as np

from ...lab.spec import Case, Exercise, Mistake

F32 = np.float32

# ---- group_reshape ---------------------------------------------------------------------------------------------------


def group_reshape(w: np.ndarray, group_size: int) -> np.ndarray:
    """The reference: w (out, in) -> (out, in / group_size, group_size)."""
    if w.shape[1] % group_size:
        raise ValueError(f"rows of {w.shape[1]} weights do not divide into groups of {group_size}")
    return w.reshape(len(w), w.shape[1] // group_size, group_size)


def _reshape_oracle(w: np.ndarray, group_size: int) -> np.ndarray:
    """Group by group, by slicing lists."""
    if w.shape[1] % group_size:
        raise ValueError
    return np.array([[row[i : i + group_size] for i in range(0, len(row), group_size)] for row in w.tolist()], w.dtype)


def _reshape_cases(random: np.random.Generator) -> list[Case]:
    return [
        (np.arange(32, dtype=F32).reshape(4, 8), 4),
        (np.arange(12, dtype=F32).reshape(2, 6), 2),
        (np.arange(24, dtype=F32).reshape(4, 6), 4),  # 6 weights do not divide into groups of 4
        (random.normal(size=(3, 12)).astype(F32), 3),
    ]


def _groups_down_the_columns(w: np.ndarray, group_size: int) -> np.ndarray:
    return w.T.reshape(w.shape[1], -1, group_size)


def _built_in_size(w: np.ndarray, group_size: int) -> np.ndarray:
    return w.reshape(len(w), -1, 4)


def _size_and_count_swapped(w: np.ndarray, group_size: int) -> np.ndarray:
    return w.reshape(len(w), group_size, -1)


def _every_nth(w: np.ndarray, group_size: int) -> np.ndarray:
    return w.reshape(len(w), group_size, -1).transpose(0, 2, 1)


def _one_long_list(w: np.ndarray, group_size: int) -> np.ndarray:
    return w.reshape(-1, group_size)


def _tail_dropped(w: np.ndarray, group_size: int) -> np.ndarray:
    count = w.shape[1] // group_size
    return w[:, : count * group_size].reshape(len(w), count, group_size)


def _across_rows(w: np.ndarray, group_size: int) -> np.ndarray:
    return w.reshape(-1, w.shape[1] // group_size, group_size)


GROUP_RESHAPE = Exercise(
    name="group_reshape",
    lab="05",
    goal="Cut every row into groups of neighbours, without moving a weight, and refuse rows that do not divide.",
    minutes=5,
    difficulty="warm-up",
    reference=group_reshape,
    oracle=_reshape_oracle,
    cases=_reshape_cases,
    may_view=True,
    hints=(
        "The result has three axes: the row, the group within the row, the weight within the group.",
        "`w.reshape(rows, columns // group_size, group_size)`: for rows that do not divide, numpy refuses by itself.",
    ),
    why="the weights lie in memory in this very order, so the cut costs nothing, and the way back is a reshape too.",
    mistakes=(
        Mistake(
            "groups down the columns",
            _groups_down_the_columns,
            "You transposed first, so a group holds weights of different rows, which belong to different outputs.",
            "Reshape w itself; neighbours in a row stay neighbours in a group.",
            "numbers from different rows side by side, such as [0, 8, 16, 24] in the toy of this page",
        ),
        Mistake(
            "size and count swapped",
            _size_and_count_swapped,
            "The number of groups and the size of a group changed places.",
            "The last axis is the weights of one group: its length is `group_size`.",
            "the shape (2, 2, 3) where (2, 3, 2) is expected",
        ),
        Mistake(
            "every n-th weight",
            _every_nth,
            "The weights were dealt out like cards: the shape is right, and neighbours fell into different groups.",
            "Reshape straight to (out, groups, group_size), without a transpose.",
            "the right shape, and [0, 3] in a group where [0, 1] is expected",
        ),
        Mistake(
            "one long list of groups",
            _one_long_list,
            "`reshape(-1, group_size)` forgets which row a group came from, and lets groups run over a row's end.",
            "Keep the rows as the first of three axes.",
            "the shape (6, 2) where (2, 3, 2) is expected",
        ),
        Mistake(
            "size of the toy built in",
            _built_in_size,
            "The 4 of the toy stands in your code, so other group sizes are cut in the same way.",
            "Use the argument `group_size`.",
            "right for the toy, and wrong for groups of 2 and 3",
        ),
        Mistake(
            "groups across rows",
            _across_rows,
            "With -1 for the rows numpy found a shape that fits, in which groups begin in one row and end in the next.",
            "Say how many rows there are: `w.shape[0]`.",
            "a result for rows of 6 in groups of 4, which must be refused",
        ),
        Mistake(
            "tail dropped",
            _tail_dropped,
            "The weights after the last whole group were cut off without a word.",
            "Refuse rows that do not divide: let the reshape raise its ValueError.",
            "a result for rows of 6 in groups of 4, with two weights of each row missing",
        ),
    ),
)

# ---- ungroup ---------------------------------------------------------------------------------------------------------


def ungroup(groups: np.ndarray) -> np.ndarray:
    """The reference: groups (out, n_groups, group_size) -> (out, n_groups * group_size)."""
    return groups.reshape(groups.shape[0], groups.shape[1] * groups.shape[2])


def _ungroup_oracle(groups: np.ndarray) -> np.ndarray:
    return np.array([[x for group in row for x in group] for row in groups.tolist()], groups.dtype)


def _ungroup_cases(random: np.random.Generator) -> list[Case]:
    return [
        (np.arange(32, dtype=F32).reshape(4, 2, 4),),
        (np.arange(12, dtype=F32).reshape(2, 3, 2),),
        (np.arange(24, dtype=np.int8).reshape(2, 3, 4),),
        (random.normal(size=(3, 4, 5)).astype(F32),),
    ]


def _interleaved(groups: np.ndarray) -> np.ndarray:
    return groups.transpose(0, 2, 1).reshape(len(groups), -1)


def _a_row_for_each_group(groups: np.ndarray) -> np.ndarray:
    return groups.reshape(-1, groups.shape[-1])


def _side_by_side(groups: np.ndarray) -> np.ndarray:
    return np.hstack(list(groups))


def _group_by_group(groups: np.ndarray) -> np.ndarray:
    return groups.transpose(1, 0, 2).reshape(len(groups), -1)


def _built_in_shape(groups: np.ndarray) -> np.ndarray:
    return groups.reshape(4, 8)


def _flat(groups: np.ndarray) -> np.ndarray:
    return groups.flatten()


UNGROUP = Exercise(
    name="ungroup",
    lab="05",
    goal="Put the groups back together into rows: the exact inverse of `group_reshape`.",
    minutes=5,
    difficulty="warm-up",
    reference=ungroup,
    oracle=_ungroup_oracle,
    cases=_ungroup_cases,
    may_view=True,
    hints=(
        "Two axes become one: think how many rows stay, and how long each of them is.",
        "`groups.reshape(groups.shape[0], -1)` joins the last two axes.",
    ),
    why="scales that no longer line up after reloading are the most common bug of this format, and this line is where "
    "it lives.",
    mistakes=(
        Mistake(
            "transposed inverse",
            _interleaved,
            "You swapped the last two axes before the reshape, so the groups are shuffled into each other.",
            "Reshape without a transpose: what group_reshape did not move need not be moved back.",
            "the right shape, and [0, 2, 4, 1, 3, 5] where [0, 1, 2, 3, 4, 5] is expected",
        ),
        Mistake(
            "a row for each group",
            _a_row_for_each_group,
            "The groups stand one below the other, and the rows are gone.",
            "The first axis stays: `groups.shape[0]` rows.",
            "the shape (6, 2) where (2, 6) is expected",
        ),
        Mistake(
            "rows side by side",
            _side_by_side,
            "`hstack` walks along the first axis, which is the rows, and set the rows next to each other.",
            "Join the last two axes with a reshape.",
            "the shape (3, 4) where (2, 6) is expected",
        ),
        Mistake(
            "group by group",
            _group_by_group,
            "The first groups of all rows came first, then the second groups of all rows.",
            "Keep the axes in their order: row, group, weight.",
            "[0, 1, 6, 7, 2, 3] in the first row, where 2 should follow 1",
        ),
        Mistake(
            "flattened",
            _flat,
            "All the axes became one.",
            "Keep the first axis: `groups.reshape(groups.shape[0], -1)`.",
            "the shape (12,) where (2, 6) is expected",
        ),
        Mistake(
            "shape of the toy built in",
            _built_in_shape,
            "The shape (4, 8) of the toy stands in your code, and other matrices do not fit it.",
            "Take the number of rows from `groups.shape[0]`.",
            "an error that something cannot be reshaped into (4, 8)",
        ),
    ),
)
