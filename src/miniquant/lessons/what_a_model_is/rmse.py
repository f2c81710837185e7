"""One neuron: how wrong it is."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit
from .toys import HOURS, JARS, START, days


def rmse(predicted, actual):
    """The root mean squared error.

    predicted, actual: (n,) float64   ->   a float, in the unit of the data
    """
    return float(np.sqrt(np.mean((predicted - actual) ** 2)))


def oracle(predicted, actual):
    """The length of the vector of errors, divided by the root of how many there are."""
    return math.hypot(*(float(p) - float(a) for p, a in zip(predicted, actual))) / math.sqrt(len(actual))


def cases(random):
    """Two days, a single one, a perfect fit, errors that cancel, then random days."""
    made = [
        (np.array([4.0, 6.0]), np.array([1.0, 2.0])),
        (np.array([5.0]), np.array([2.0])),
        (JARS, JARS.copy()),
        (np.array([1.0, 3.0]), np.array([2.0, 2.0])),
        (START[0] * HOURS + START[1], JARS),
    ]
    return [*made, *(days(random, n) for n in (3, 10, 50))]


EXERCISE = Exercise(
    goal="Compute the root mean squared error between predicted and actual jars.",
    reference=rmse, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up", tolerance=1e-9,
    hints=(
        "Read the name backwards: take the errors, square them, take their mean, take the root of that.",
        "`np.sqrt(np.mean((predicted - actual) ** 2))`, and `float` around it.",
    ),
    why="the root brings the error back to jars; the mean makes it comparable between ten days and a thousand.",
    mistakes=(
        Mistake("the root forgotten", edit("np.sqrt", ""),
            cause="This is the mean squared error, the MSE; its unit is jars squared.",
            cure="Take the root of the mean.", see="9 where 3 is expected, and 12.5 where 3.5355 is"),
        Mistake("a sum instead of the mean", edit("np.mean", "np.sum"),
            cause="The squares are added up and not divided by their number, so more days look like a worse model.",
            cure="Use `np.mean` in place of the sum.", see="5 where 3.5355 is expected"),
        Mistake("the sum of squared errors", edit("np.sqrt(np.mean", "(np.sum"),
            cause="This is the sum of squared differences: neither the mean nor the root was taken.",
            cure="Take the mean of the squares, then the root of the mean.",
            see="9 where 3 is expected, and 25 where 3.5355 is"),
        Mistake("the root before the mean", edit("np.sqrt(np.mean", "np.mean(np.sqrt"),
            cause="The root of a square is the size of the error, so this is the mean absolute error.",
            cure="Square, then mean, and the root last.", see="3.5 where 3.5355 is expected"),
        Mistake("errors that cancel", edit("(predicted - actual) ** 2)", "predicted - actual) ** 2"),
            cause="Errors above and below cancel, since nothing was squared before the mean.",
            cure="Square every error before you take the mean.",
            see="3.5 where 3.5355 is expected, and 0 for one jar too few and one too many"),
        Mistake("n - 1",
            edit("np.mean((predicted - actual) ** 2)", "np.sum((predicted - actual) ** 2) / (len(actual) - 1)"),
            cause="The sum is divided by n - 1, as for the variance of a sample; the mean of the errors divides by n.",
            cure="Use `np.mean`.", see="infinity for a single day, and 5 where 3.5355 is expected"),
    ),
)
