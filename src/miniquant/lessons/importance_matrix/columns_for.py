"""How many columns carry a share of the importance."""

import numpy as np

from ...lab import Exercise, Mistake, edit


def columns_for(importance, share):
    """The smallest number of columns that together have a share of the
    importance.

    importance: (in,) float64, none below 0, not all 0; share: a float above
        0, at most 0.99
    ->   int: the smallest n for which some n columns have at least share ×
         the sum of all
    """
    largest_first = np.sort(importance)[::-1]
    reached = np.cumsum(largest_first) >= share * importance.sum()
    return int(reached.argmax()) + 1


def oracle(importance, share):
    """Takes one column after another, the largest first."""
    left, wanted, found = sorted(importance.tolist()), share * sum(importance.tolist()), 0
    total = 0.0
    while total < wanted:
        total += left.pop()
        found += 1
    return found


def cases(random):
    """Whole numbers: one large column, equal ones, out of order, exactly half, all but a zero; then a drawn one in eighths, and one where a sum is a little less than the share."""
    squares = random.integers(1, 5000, 400).astype(float) ** 2  # the sums are whole numbers, too large for float32
    reached = np.sort(squares)[::-1][:179].sum() / squares.sum()
    drawn = [(random.integers(0, 40, 40) / 8, 0.5), (squares, float(reached) + 2e-8)]
    return [
        (np.array([1.0, 6.0, 1.0, 2.0]), 0.5),
        (np.array([1.0, 1.0, 1.0, 1.0]), 0.5),
        (np.array([3.0, 1.0, 2.0, 5.0, 4.0]), 0.75),
        (np.array([4.0, 2.0, 2.0]), 0.5),
        (np.array([2.0, 0.0, 1.0, 1.0]), 0.875),
        (np.array([7.0]), 0.25),
        (np.array([8.0, 1.0, 1.0, 4.0, 2.0]), 0.125),
        *drawn,
    ]


EXERCISE = Exercise(
    goal="Count how many columns it takes, the largest first, to have a share of all importance.",
    reference=columns_for, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up",
    hints=(
        "Begin with the most important column, add the next one, and go on until the share is reached.",
        "`np.sort` sorts upwards and `[::-1]` reverses. `np.cumsum` adds up as it goes: its number n is the sum of the first n. `argmax` of an array of bools is the position of the first True.",
    ),
    why="one number says how uneven an importance matrix is, and so how much there is to gain from it.",
    mistakes=(
        Mistake("the smallest first", edit("np.sort(importance)[::-1]", "np.sort(importance)"),
            cause="The columns were added up from the least important one.",
            cure="Reverse the sorted array with `[::-1]`.", see="a number that is too large"),
        Mistake("in the order of the matrix", edit("np.sort(importance)[::-1]", "importance"),
            cause="The columns were added up in the order in which they are in the matrix.",
            cure="Sort them first, the largest at the beginning.", see="right where the largest come first"),
        Mistake("one too few", edit("int(reached.argmax()) + 1", "int(reached.argmax())"),
            cause="This is the position of the last column that is needed, counted from 0.",
            cure="Add 1.", see="a number that is one too small, 0 where 1 is expected"),
        Mistake("more than the share", edit(">=", ">"),
            cause="The columns must have at least the share; you asked for more than it.",
            cure="Use `>=`.", see="right, except where the share is met exactly"),
        Mistake("columns above the share of the largest", edit("np.cumsum(largest_first) >= share * importance.sum()", "largest_first < share * importance.max()").edit("int(reached.argmax()) + 1", "int((~reached).sum())"),
            cause="You counted the columns that have at least this share of the largest one.",
            cure="Add the columns up, and compare with a share of the sum.", see="a number that has nothing to do with the sum"),
        Mistake("a share of the columns", edit("    return int(reached.argmax()) + 1", "    return (int(reached.argmax()) + 1) / len(importance)"),
            cause="The number was divided by the number of columns.",
            cure="Return the number itself.", see="a fraction where a whole number is expected"),
        Mistake("the share of the squares", edit("np.cumsum(largest_first) >= share * importance.sum()", "np.cumsum(largest_first**2) >= share * (importance**2).sum()"),
            cause="The importance was squared. It is a mean square already.",
            cure="Add up the numbers as they are.", see="a number that is too small"),
        Mistake("the sum forgotten", edit("share * importance.sum()", "share"),
            cause="The sums were compared with the share itself, as if all importance were 1.",
            cure="Compare with share × the sum of all.", see="1 nearly always"),
    ),
)
