"""The error of weights, each column times its importance."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit


def weighted_error(w, restored, importance):
    """The squared error of a matrix, each column times its importance.

    w: (out, in) float64, the weights; restored: (out, in) float64, what a
        file gives back; importance: (in,) float64
    ->   float: the sum over all weights of importance of the column ×
         squared error of the weight, right to 1e-9
    """
    change = restored - w
    return float((importance * change**2).sum())


def oracle(w, restored, importance):
    """Weight by weight."""
    rows = zip(w.tolist(), restored.tolist())
    return math.fsum(i * (b - a) ** 2 for one, other in rows for a, b, i in zip(one, other, importance.tolist()))


def cases(random):
    """One row, two rows, as many rows as columns, equal importance, a column that does not count, nothing lost, random with a row that lost nothing and two rows alike."""
    w, change = random.normal(0, 1, (6, 5)), random.normal(0, 0.1, (6, 5))
    change[0], w[5], change[5] = 0, w[4], change[4]
    square = random.normal(0, 1, (4, 4))
    return [
        (np.array([[1.0, 2.0]]), np.array([[1.5, 0.0]]), np.array([4.0, 1.0])),
        (np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]]), np.array([[1.0, 2.5, 2.0], [-0.5, 0.0, 3.0]]), np.array([8.0, 4.0, 1.0])),
        (np.array([[1.0, 0.0], [3.0, 1.0]]), np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([0.25, 2.0])),
        (np.array([[0.5, -0.5]]), np.array([[0.0, 0.0]]), np.array([1.0, 1.0])),
        (np.array([[5.0, 1.0]]), np.array([[-5.0, 3.0]]), np.array([0.0, 0.5])),
        (np.array([[1.0, -2.0, 4.0]]), np.array([[1.0, -2.0, 4.0]]), np.array([3.0, 1.0, 2.0])),
        (w, w + change, random.uniform(0, 3, 5)),
        (square, np.rint(square), random.uniform(0, 3, 4)),
    ]


EXERCISE = Exercise(
    goal="Measure the error of a matrix so that it counts in each column as much as the column's importance says.",
    reference=weighted_error, oracle=oracle, cases=cases, minutes=3, difficulty="warm-up", tolerance=1e-9,
    hints=(
        "Take the difference for each weight, square it, multiply by the importance of its column, and add up everything.",
        "An array (in,) times an array (out, in) multiplies each row by it. `.sum()` adds up all numbers.",
    ),
    why="one number for a matrix, and it follows what the outputs lose more closely than the plain squared error.",
    mistakes=(
        Mistake("importance left out", edit("importance * change", "change"),
            cause="This is the plain squared error: all columns count alike.",
            cure="Multiply by the importance.", see="right where every importance is 1"),
        Mistake("not squared", edit("change**2", "change"),
            cause="The errors were not squared, so errors of both signs cancel.",
            cure="Square the change.", see="a number that is too small, or below 0"),
        Mistake("absolute errors", edit("change**2", "np.abs(change)"),
            cause="Absolute errors were added up.",
            cure="Square the change.", see="right where all errors are 0 or 1"),
        Mistake("the importance squared, too", edit("importance * change**2", "(importance * change) ** 2"),
            cause="The importance was squared together with the change. It is a mean square already.",
            cure="Square the change alone.", see="right where every importance is 0 or 1"),
        Mistake("the root of the importance", edit("importance * change**2", "np.sqrt(importance) * change**2"),
            cause="The root of the importance was used.",
            cure="Use the importance itself: it belongs to the squared error.", see="right where every importance is 0 or 1"),
        Mistake("a mean", edit(".sum()", ".mean()"),
            cause="This is the mean over all weights.",
            cure="Add up, with `.sum()`.", see="a number that is too small by a factor, the number of weights"),
        Mistake("the importance of the row", edit("importance * change**2", "np.resize(importance, len(w))[:, None] * change**2"),
            cause="Row i was multiplied by importance i. The importance belongs to the columns.",
            cure="Leave out the `[:, None]`: numpy lines up the last axes.", see="wrong wherever the importance differs"),
        Mistake("divided by the importance", edit("importance * change**2", "change**2 / np.where(importance == 0, 1, importance)"),
            cause="The errors were divided by the importance.",
            cure="Multiply by it.", see="right where every importance is 1"),
        Mistake("the root of it", edit("float((importance * change**2).sum())", "float(np.sqrt((importance * change**2).sum()))"),
            cause="This is the root of what is asked.",
            cure="Leave out the root.", see="the square root of each expected number"),
        Mistake("one number for each row", edit("float((importance * change**2).sum())", "(importance * change**2).sum(axis=1)"),
            cause="The errors were added up along the rows only.",
            cure="Add up everything, without `axis`.", see="an array where a number is expected"),
    ),
)
