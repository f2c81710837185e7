"""One neuron: how wrong it is."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit
from .toys import HOURS, JARS, START, days


def rmse(predicted, actual):
    """The root mean squared error: the square root of the mean of the
    squared errors.

    predicted, actual: (n,) float64, n at least 1
    ->   a float, in the unit of the data

    Compute in float64 and do not round: a difference of up to 1e-9 is
    allowed.
    """
    return float(np.sqrt(np.mean((predicted - actual) ** 2)))


def oracle(predicted, actual):
    """The length of the vector of errors, divided by the root of how many there are."""
    return math.hypot(*(float(p) - float(a) for p, a in zip(predicted, actual))) / math.sqrt(len(actual))


def cases(random):
    """Two days, a single one, a perfect fit, errors that cancel, very small ones, then random days."""
    made = [
        (np.array([4.0, 6.0]), np.array([1.0, 2.0])),
        (np.array([0.0]), np.array([3.0])),
        (JARS, JARS.copy()),
        (np.array([1.0, -1.0]), np.array([0.0, 0.0])),
        (START[0] * HOURS + START[1], JARS),
    ]
    made += [(np.array([2.0, -1.0, 0.0]), np.array([2.0, 1.0, 4.0])), (HOURS * 1e3 / 7, JARS)]  # with all digits
    made += [(np.array([1e8 + 3, 1e8 - 4]), np.array([1e8, 1e8]))]  # small errors of large numbers
    made += [(np.array([3.0, 3.0, -1.0, 0.0]), np.array([1.0, 1.0, 0.0, -2.0]))]
    made += [(np.array([1e-5, 3e-5]), np.array([-1e-5, 1e-5]))]
    return [*made, *(days(random, n) for n in (3, 10, 50))]


def quantities(predicted, actual):
    """Other measures of an error, and what people divide by."""
    error = predicted - actual
    size = np.abs(error)
    return {
        "the number of days": len(error),
        "the mean of `actual`": float(actual.mean()),
        "the largest less the smallest of `actual`": float(np.ptp(actual)),
        "the root of the mean square of `predicted`": float(np.sqrt((predicted**2).mean())),
        "the root of the mean square of `actual`": float(np.sqrt((actual**2).mean())),
        "the median size of the errors": float(np.median(size)),
        "the size of the largest error": float(size.max()),
        "there is more than one day": len(error) > 1,
        "the errors differ in size": len(set(size.tolist())) > 1,
        "there are positive and negative errors": bool(error.max() > 0 > error.min()),
    }


EXERCISE = Exercise(
    goal="Compute the root mean squared error between predicted and actual jars.",
    reference=rmse, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up", tolerance=1e-9, quantities=quantities,
    hints=(
        "Read the name backwards: take the errors, square them, take their mean, take the root of that.",
        "`** 2` squares every element of an array; `np.mean` and `np.sqrt` do the rest.",
    ),
    why="the root gives an error in jars; because of the mean you can compare ten days with a thousand.",
    mistakes=(
        Mistake("the root forgotten", edit("np.sqrt", ""),
            cause="This is the mean squared error, the MSE; its unit is that of the data squared.",
            cure="Take the root of the mean.", see="9 where 3 is expected, and 12.5 where 3.5355 is"),
        Mistake("a sum instead of the mean", edit("np.mean", "np.sum"),
            cause="This is the root of the sum of the squares, not of their mean, so more days look like a worse model.",
            cure="Use `np.mean` in place of the sum.", see="5 where 3.5355 is expected"),
        Mistake("the sum of squared errors", edit("np.sqrt(np.mean", "(np.sum"),
            cause="This is the sum of squared differences: neither the mean nor the root was taken.",
            cure="Take the mean of the squares, then the root of the mean.",
            see="9 where 3 is expected, and 25 where 3.5355 is"),
        Mistake("the root before the mean", edit("np.sqrt(np.mean", "np.mean(np.sqrt"),
            cause="This is the mean size of the errors, the mean absolute error: an error three times as large counts three times as much, not nine times.",
            cure="Square, then mean, and the root last.", see="3.5 where 3.5355 is expected"),
        Mistake("errors that cancel", edit("(predicted - actual) ** 2)", "predicted - actual) ** 2"),
            cause="Errors above and below cancel: this is the size of the mean error.",
            cure="Square every error before you take the mean.",
            see="3.5 where 3.5355 is expected, and 0 for one jar too few and one too many"),
        Mistake("n - 1",
            edit("np.mean((predicted - actual) ** 2)", "np.sum((predicted - actual) ** 2) / (len(actual) - 1)"),
            cause="This is the result with n - 1 days in place of n, as for the variance of a sample; the mean of the errors divides by n.",
            cure="Use `np.mean`.", see="infinity for a single day, and 5 where 3.5355 is expected"),
        Mistake("the standard deviation", edit('float(np.sqrt(np.mean((predicted - actual) ** 2)))', 'float(np.std(predicted - actual))'),
            cause="This is the standard deviation of the errors, from which their mean is subtracted first.",
            cure='Square the errors themselves, then take the mean and the root.', see='0 for a single day, and 0.5 where 3.5355 is expected'),
        Mistake("the length divided by n", edit('float(np.sqrt(np.mean((predicted - actual) ** 2)))', 'float(np.linalg.norm(predicted - actual) / len(actual))'),
            cause="This is the root of the sum, divided by n; the mean belongs inside the root.",
            cure='Take the mean of the squares first, then the root.', see='2.5 where 3.5355 is expected'),
        Mistake("rounded", edit('float(np.sqrt(np.mean((predicted - actual) ** 2)))', 'round(float(np.sqrt(np.mean((predicted - actual) ** 2))), 4)'),
            cause='The result is rounded to four decimals.',
            cure='Return the number as it is, and round only for printing.', see='3.5355 where 3.5355339… is expected'),
        Mistake("no mean", edit('float(np.sqrt(np.mean((predicted - actual) ** 2)))', 'np.sqrt((predicted - actual) ** 2)'),
            cause="There is an array of numbers, one for each day; the mean is missing.",
            cure='Take the mean of the squares before the root.', see='an array where a number is expected'),
        Mistake("the largest error", edit('float(np.sqrt(np.mean((predicted - actual) ** 2)))', 'float(np.max(np.abs(predicted - actual)))'),
            cause='This is the largest error of all days.',
            cure='Take the mean of the squares, then the root.', see='4 where 3.5355 is expected'),
        Mistake("squares of the values", edit('float(np.sqrt(np.mean((predicted - actual) ** 2)))', 'float(np.sqrt(np.abs(np.mean(predicted**2 - actual**2))))'),
            cause="This is the root of the size of the mean of predicted² - actual²; the values must be subtracted first, then squared.",
            cure='Subtract first, then square.', see='a number that is far too large'),
        Mistake("float32", edit('float(np.sqrt(np.mean((predicted - actual) ** 2)))', 'float(np.sqrt(np.mean((predicted.astype(np.float32) - actual.astype(np.float32)) ** 2)))'),
            cause="This is the result for numbers of about seven digits, as float32 holds them.",
            cure='Compute in the type of the arguments, float64.', see='a number that differs after seven digits'),
    ),
)
