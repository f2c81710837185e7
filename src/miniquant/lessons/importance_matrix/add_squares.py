"""The squares of what meets each column, added up batch by batch."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit


def add_squares(sums, count, x):
    """Add the squares of one batch to those of the batches before it.

    sums: (in,) float64, for each column the sum of the squares so far;
        count: int, how many tokens that were; x: (tokens, in) float32, what
        meets the columns in this batch
    ->   new_sums: (in,) float64, none above 10,000, each right to 0.01;
         new_count: int
    """
    squares = x.astype(np.float64) ** 2  # (tokens, in)
    return sums + squares.sum(axis=0), count + len(x)


def oracle(sums, count, x):
    """Column by column, one number at a time."""
    rows = x.tolist()
    found = [math.fsum([before, *(row[c] * row[c] for row in rows)]) for c, before in enumerate(sums.tolist())]
    return np.array(found), count + sum(1 for _ in rows)


def cases(random):
    """The first batch, a second one, numbers that cancel, one token, as many tokens as columns, a long batch, then random batches."""
    return [
        (np.zeros(2), 0, np.array([[1, 2], [3, -1], [0, 1]], np.float32)),
        (np.array([10.0, 6.0]), 3, np.array([[2, 0], [1, -2]], np.float32)),
        (np.array([0.0, 1.0, 0.25]), 4, np.array([[-3, 0.5, 1], [3, -0.5, 1]], np.float32)),
        (np.array([1.0, 2.0, 3.0]), 7, np.array([[0.5, -4, 0]], np.float32)),
        (np.array([2.0, 1.0]), 5, np.array([[0, 0], [3, 1], [0, 0]], np.float32)),  # a token of zeros counts
        (np.array([5.0]), 1, np.array([[2], [3], [6], [1]], np.float32)),
        (np.array([3.0, 50.0]), 9, np.full((2000, 2), [2.2, 1.1], np.float32)),  # too many for sums in float32
        (np.array([1000.0, 0.0, 9.0, 1.0]), 256, random.normal(0, [8, 0.1, 1, 2], (30, 4)).astype(np.float32)),
        (random.uniform(0, 90, 5), 60, random.normal(0, 1, (5, 5)).astype(np.float32)),
    ]


EXERCISE = Exercise(
    goal="Add one batch to the running sums of squares, one sum for each column, and to the number of tokens.",
    reference=add_squares, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up", tolerance=0.01,
    hints=(
        "A row of x is a token and a column of x is a column of the matrix. Square each number first, then add up over the tokens.",
        "`.astype(np.float64)`, `** 2` and `.sum(axis=0)` give one number for each column. `len(x)` is the number of tokens.",
    ),
    why="two numbers are kept for each column, however much text there is.",
    mistakes=(
        Mistake("not squared", edit(" ** 2", ""),
            cause="The numbers themselves were added up, so positive and negative ones cancel.",
            cure="Square each number before you add.", see="numbers that are too small, some of them below 0"),
        Mistake("absolute values", edit("x.astype(np.float64) ** 2", "np.abs(x.astype(np.float64))"),
            cause="Absolute values were added up; lab 18 had the mean of those. Here squares are asked.",
            cure="Use `** 2`.", see="right where all numbers are 0, 1 or -1"),
        Mistake("squared after adding", edit("x.astype(np.float64) ** 2", "x.astype(np.float64)").edit("squares.sum(axis=0)", "squares.sum(axis=0) ** 2"),
            cause="The numbers of the batch were added first and the sum was squared, so numbers of both signs cancel.",
            cure="Square each number, then add.", see="right for a batch of one token"),
        Mistake("the mean of the batch", edit(".sum(axis=0)", ".mean(axis=0)"),
            cause="The mean square of the batch was added. A long batch then counts as much as a short one.",
            cure="Add up the squares; the division by the count comes at the very end.", see="right for a batch of one token"),
        Mistake("a sum for each token", edit("axis=0", "axis=1"),
            cause="The squares were added up along axis 1: one number for each token.",
            cure="Add up over the tokens, along axis 0.", see="an error, or wrong numbers where there are as many tokens as columns"),
        Mistake("one sum for all columns", edit(".sum(axis=0)", ".sum()"),
            cause="All squares of the batch were added to every column.",
            cure="Add up along axis 0, so that each column keeps its own sum.", see="right for one column"),
        Mistake("this batch alone", edit("sums + squares", "squares").edit("count + len(x)", "len(x)"),
            cause="The result knows this batch only; what came before is lost.",
            cure="Add to `sums` and to `count`.", see="right for the first batch"),
        Mistake("batches counted", edit("count + len(x)", "count + 1"),
            cause="The count grew by one: it counts batches.",
            cure="Count tokens: `len(x)` is how many rows the batch has.", see="sums right, a count that is too small"),
        Mistake("numbers counted", edit("count + len(x)", "count + x.size"),
            cause="The count grew by the number of numbers in x, which is tokens × columns.",
            cure="Count tokens: `len(x)`.", see="sums right, a count that is too large by a factor"),
        Mistake("columns counted", edit("count + len(x)", "count + x.shape[1]"),
            cause="The count grew by the number of columns.",
            cure="Count tokens: `len(x)`.", see="sums right; the count right where there are as many tokens as columns"),
        Mistake("sums changed in place", edit("    return sums + squares.sum(axis=0), count + len(x)", "    sums += squares.sum(axis=0)\n    return sums, count + len(x)"),
            cause="`+=` changes the array that was passed in.",
            cure="Return `sums + …`, which is a new array.", see="the right numbers, and a word about the argument"),
        Mistake("float32 sums", edit("sums + squares.sum(axis=0)", "(sums + squares.sum(axis=0)).astype(np.float32)"),
            cause="The sums are float32, and a sum over much text needs more digits.",
            cure="Keep float64.", see="the dtype float32"),
    ),
)
