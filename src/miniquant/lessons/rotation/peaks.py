"""How far the largest number of a row is above the others."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit


def peaks(x):
    """For each row, its largest size in parts of its root mean square.

    x: (rows, n) float64, no row is all 0
    ->   (rows,) float64, each number right to 1e-9
    """
    size = np.sqrt((x**2).mean(axis=1))  # (rows,)
    return np.abs(x).max(axis=1) / size


def oracle(x):
    """Row by row, with plain numbers."""
    found = []
    for row in x.tolist():
        squares = math.fsum(number * number for number in row) / len(row)
        found.append(max(max(row), -min(row)) / math.sqrt(squares))
    return np.array(found)


def cases(random):
    """Equal sizes, one number alone, a large negative number, several rows, as many rows as columns, random ones."""
    made = [
        [[2, -2, 2, -2]],
        [[0, 8, 0, 0]],
        [[1, -7, 1, 7], [3, 4, 0, 0]],
        [[1, -5]],
        [[6], [-1e-20]],
        [[1, 2, 2], [0, 0, -3], [4, 4, 7]],
    ]
    drawn = random.standard_t(2, (5, 16)) * np.exp(random.normal(0, 2, (5, 1)))
    return [*((np.array(x, np.float64),) for x in made), (drawn,)]


EXERCISE = Exercise(
    goal="Measure how far the largest number of each row is above the usual size in that row.",
    reference=peaks, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up", tolerance=1e-9,
    hints=(
        "Two numbers for each row: the largest size, its sign left out, and the root of the mean of the squares. Divide the first by the second.",
        "`np.abs`, `.max(axis=1)`, `** 2`, `.mean(axis=1)` and `np.sqrt`. With axis=1 each gives one number for each row.",
    ),
    why="1 means that all numbers of a row have the same size; the larger the peak, the fewer levels are left for the rest.",
    mistakes=(
        Mistake("the largest, with its sign", edit("np.abs(x).max(axis=1)", "x.max(axis=1)"),
            cause="`x.max()` is the largest number, and a large negative one is passed over.",
            cure="Take the largest of `np.abs(x)`.", see="right where the largest size is above 0"),
        Mistake("the mean of the sizes", edit("np.sqrt((x**2).mean(axis=1))", "np.abs(x).mean(axis=1)"),
            cause="You divided by the mean of the sizes, which is also what comes out if the root is taken before the mean. The root mean square counts large numbers more.",
            cure="Square, take the mean, take the root.", see="right where all sizes are equal, too large elsewhere"),
        Mistake("the standard deviation", edit("np.sqrt((x**2).mean(axis=1))", "np.sqrt(((x - x.mean(axis=1, keepdims=True)) ** 2).mean(axis=1) + 1e-300)"),
            cause="The mean was subtracted first, which gives the standard deviation.",
            cure="Take the squares of the numbers themselves.", see="right where the mean of a row is 0"),
        Mistake("the root forgotten", edit("np.sqrt((x**2).mean(axis=1))", "(x**2).mean(axis=1)"),
            cause="The mean of the squares was not brought back by a root.",
            cure="Put `np.sqrt` around the mean.", see="right where the root mean square is 1"),
        Mistake("the sum instead of the mean", edit("(x**2).mean(axis=1)", "(x**2).sum(axis=1)"),
            cause="You divided by the root of the sum of the squares, the length of the row.",
            cure="Take the mean of the squares.", see="numbers of 1 or less"),
        Mistake("down the columns", edit("(x**2).mean(axis=1)", "(x**2).mean(axis=0)").edit("np.abs(x).max(axis=1)", "np.abs(x).max(axis=0)"),
            cause="Both were taken down the columns: one number for each column.",
            cure="Use axis=1.", see="another shape, or wrong numbers where there are as many rows as columns"),
        Mistake("one size for all rows", edit("(x**2).mean(axis=1)", "(x**2).mean()"),
            cause="The root mean square of the whole array was used for every row.",
            cure="Take it for each row, with axis=1.", see="right where there is one row"),
        Mistake("upside down", edit("np.abs(x).max(axis=1) / size", "size / np.abs(x).max(axis=1)"),
            cause="The usual size was divided by the largest.",
            cure="Divide the largest size by the root mean square.", see="numbers of 1 or less"),
        Mistake("the square of the peak", edit("np.abs(x).max(axis=1) / size", "(np.abs(x).max(axis=1) / size) ** 2"),
            cause="The result is squared.",
            cure="Leave out the square.", see="right where the peak is 1"),
        Mistake("a column", edit("np.abs(x).max(axis=1) / size", "(np.abs(x).max(axis=1) / size)[:, None]"),
            cause="The result has the shape (rows, 1).",
            cure="Return one number for each row: (rows,).", see="the right numbers in a column"),
    ),
)
