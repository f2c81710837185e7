"""The exercises of lab 01 on one neuron: what it computes, and how wrong it is."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...lab.spec import Case, Exercise, Mistake

HOURS, JARS = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 4.0, 6.0, 8.0])
START = (-0.6216, 0.7633)  # the weight and bias with which the essay's own run begins


def days(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Some days drawn around a line: hours and jars, each (n,)."""
    hours = random.uniform(0, 12, n).round(2)
    return hours, (1.8 * hours + 0.5 + random.normal(0, 1, n)).round(2)


# ---- predict_jars ----------------------------------------------------------------------------------------------------


def predict_jars(weight: float, bias: float, hours: np.ndarray) -> np.ndarray:
    """The reference: hours (n,) -> jars (n,)."""
    return weight * hours + bias


def predict_oracle(weight: float, bias: float, hours: np.ndarray) -> np.ndarray:
    """One day after the other."""
    return np.array([bias + weight * float(hour) for hour in hours])


def _predict_cases(random: np.random.Generator) -> list[Case]:
    made = [(2.0, 1.0, np.array([3.0])), (2.0, 0.0, HOURS), (*START, HOURS), (0.0, 1.5, HOURS)]
    return [*made, *((float(w), float(b), days(random, 5)[0]) for w, b in random.normal(0, 2, (3, 2)))]


PREDICT_JARS = Exercise(
    name="predict_jars",
    lab="01",
    goal="Compute what one neuron predicts: hours of sunshine in, jars out.",
    minutes=2,
    difficulty="warm-up",
    reference=predict_jars,
    oracle=predict_oracle,
    cases=_predict_cases,
    tolerance=1e-9,
    hints=(
        "A neuron multiplies its input by the weight and adds the bias; numpy does it for all days at once.",
        "`weight * hours + bias` is all of it.",
    ),
    why="a layer of MiniGPT is this line with a matrix for the weight.",
    mistakes=(
        Mistake(
            "no bias",
            lambda weight, bias, hours: weight * hours,
            "The bias is not added, so every line goes through zero.",
            "Add `bias` after the multiplication.",
            "6 where 7 is expected",
        ),
        Mistake(
            "the bias inside the product",
            lambda weight, bias, hours: weight * (hours + bias),
            "The bias is added to the hours, and then multiplied as well.",
            "Multiply first: `weight * hours + bias`.",
            "8 where 7 is expected",
        ),
        Mistake(
            "the bias subtracted",
            lambda weight, bias, hours: weight * hours - bias,
            "The bias is subtracted; a neuron adds it, and learns a negative one where it needs to subtract.",
            "Add it.",
            "5 where 7 is expected",
        ),
        Mistake(
            "weight and bias exchanged",
            lambda weight, bias, hours: bias * hours + weight,
            "The hours are multiplied by the bias, and the weight is added.",
            "The weight belongs to the input; the bias stands alone.",
            "a line with the wrong slope",
        ),
        Mistake(
            "one number for all days",
            lambda weight, bias, hours: float((weight * hours + bias).sum()),
            "The days are added up, and each day wants a prediction of its own.",
            "Leave out the sum: one number in, one number out.",
            "a float where an array is expected",
        ),
        Mistake(
            "whole jars",
            lambda weight, bias, hours: np.rint(weight * hours + bias),
            "The predictions are rounded to whole jars; a rounded prediction has no slope to learn from.",
            "Return what the formula gives.",
            "numbers without a fraction",
        ),
    ),
)

# ---- rmse ------------------------------------------------------------------------------------------------------------


def rmse(predicted: np.ndarray, actual: np.ndarray) -> float:
    """The reference: two (n,) -> the root of the mean squared error."""
    return float(np.sqrt(np.mean((predicted - actual) ** 2)))


def rmse_oracle(predicted: np.ndarray, actual: np.ndarray) -> float:
    """The length of the vector of errors, divided by the root of how many there are."""
    return math.hypot(*(float(p) - float(a) for p, a in zip(predicted, actual))) / math.sqrt(len(actual))


def _rmse_cases(random: np.random.Generator) -> list[Case]:
    made = [
        (np.array([4.0, 6.0]), np.array([1.0, 2.0])),
        (np.array([5.0]), np.array([2.0])),
        (JARS, JARS.copy()),
        (np.array([1.0, 3.0]), np.array([2.0, 2.0])),
        (START[0] * HOURS + START[1], JARS),
    ]
    return [*made, *(tuple(days(random, n)) for n in (3, 10, 50))]


def _from_errors(function: Callable[[np.ndarray], float]) -> Callable[[np.ndarray, np.ndarray], float]:
    return lambda predicted, actual: float(function(predicted - actual))


RMSE = Exercise(
    name="rmse",
    lab="01",
    goal="Compute the root mean squared error between predicted and actual jars.",
    minutes=4,
    difficulty="warm-up",
    reference=rmse,
    oracle=rmse_oracle,
    cases=_rmse_cases,
    tolerance=1e-9,
    hints=(
        "Read the name backwards: take the errors, square them, take their mean, take the root of that.",
        "`np.sqrt(np.mean((predicted - actual) ** 2))`, and `float` around it.",
    ),
    why="the root brings the error back to jars; the mean makes it comparable between ten days and a thousand.",
    mistakes=(
        Mistake(
            "the root forgotten",
            _from_errors(lambda e: np.mean(e**2)),
            "This is the mean squared error, the MSE; its unit is jars squared.",
            "Take the root of the mean.",
            "9 where 3 is expected, and 12.5 where 3.5355 is",
        ),
        Mistake(
            "a sum instead of the mean",
            _from_errors(lambda e: np.sqrt(np.sum(e**2))),
            "The squares are added up and not divided by their number, so more days look like a worse model.",
            "Use `np.mean` in place of the sum.",
            "5 where 3.5355 is expected",
        ),
        Mistake(
            "the sum of squared errors",
            _from_errors(lambda e: np.sum(e**2)),
            "This is the sum of squared differences: neither the mean nor the root was taken.",
            "Take the mean of the squares, then the root of the mean.",
            "9 where 3 is expected, and 25 where 3.5355 is",
        ),
        Mistake(
            "the root before the mean",
            _from_errors(lambda e: np.mean(np.sqrt(e**2))),
            "The root of a square is the size of the error, so this is the mean absolute error.",
            "Square, then mean, and the root last.",
            "3.5 where 3.5355 is expected",
        ),
        Mistake(
            "errors that cancel",
            _from_errors(lambda e: abs(np.mean(e))),
            "Errors above and below cancel, since nothing was squared before the mean.",
            "Square every error before you take the mean.",
            "3.5 where 3.5355 is expected, and 0 for one jar too few and one too many",
        ),
        Mistake(
            "n - 1",
            lambda predicted, actual: float(np.sqrt(np.sum((predicted - actual) ** 2) / (len(actual) - 1))),
            "The sum is divided by n - 1, as for the variance of a sample; the mean of the errors divides by n.",
            "Use `np.mean`.",
            "infinity for a single day, and 5 where 3.5355 is expected",
        ),
    ),
)
