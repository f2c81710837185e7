"""Training one neuron: which way is down."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit
from .toys import HOURS, JARS, START, days


def gradients(weight, bias, hours, jars):
    """The slope of the mean squared error.

    weight, bias: floats; hours, jars: (n,) float64   ->   (slope in the weight, slope in the bias), two floats
    """
    error = weight * hours + bias - jars
    return float(np.mean(2 * error * hours)), float(np.mean(2 * error))


def oracle(weight, bias, hours, jars):
    """By the difference quotient: exact for a parabola, whatever the step, so the step may be 1."""

    def loss(w, b):
        return math.fsum((w * float(h) + b - float(j)) ** 2 for h, j in zip(hours, jars)) / len(jars)

    by_weight = (loss(weight + 1, bias) - loss(weight - 1, bias)) / 2
    return by_weight, (loss(weight, bias + 1) - loss(weight, bias - 1)) / 2


def cases(random):
    """One day, four days from a bad start and at a perfect fit, then random lines."""
    made = [
        (1.0, 0.0, np.array([3.0]), np.array([5.0])),
        (*START, HOURS, JARS),
        (2.0, 0.0, HOURS, JARS),
        (0.0, 0.0, HOURS, JARS),
    ]
    return [*made, *((weight, bias, *days(random, 6)) for weight, bias in random.normal(0, 2, (3, 2)).tolist())]


EXERCISE = Exercise(
    goal="Compute the slope of the mean squared error in the weight, and its slope in the bias.",
    reference=gradients, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-6,
    hints=(
        "One day's error is e = weight · hours + bias - jars. The derivative of e² is 2e times that of e, which is `hours` for the weight and 1 for the bias.",
        "`np.mean(2 * e * hours)` and `np.mean(2 * e)`, with e the prediction minus the jars.",
    ),
    why="`loss.backward()` computes exactly this, for millions of weights.",
    mistakes=(
        Mistake("the sign reversed", edit("weight * hours + bias - jars", "jars - (weight * hours + bias)"),
            cause="The error was taken as actual minus predicted, so both slopes point the wrong way.",
            cure="Take the prediction minus the jars.", see="12 where -12 is expected"),
        Mistake("the 2 forgotten", edit("2 * error * hours", "error * hours").edit("2 * ", ""),
            cause="The derivative of e² is 2e, and the 2 is missing.",
            cure="Multiply by 2, or your steps are half as long as PyTorch's.", see="both slopes half as large"),
        Mistake("a sum instead of the mean",
            edit("return float(np.mean", "return float(np.sum").edit("np.mean", "np.sum"),
            cause="The slopes of all days are added up, and the loss is their mean.",
            cure="Use `np.mean`.", see="one day right, and four days four times too large"),
        Mistake("the hours forgotten", edit("error * hours", "error"),
            cause="The slope in the weight lacks the factor `hours`: a day of 0 hours says nothing about the weight.",
            cure="Multiply by `hours` in the first of the two.", see="two equal slopes"),
        Mistake("the hours in the bias too", edit("error))", "error * hours))"),
            cause="The slope in the bias was multiplied by the hours, but the bias is multiplied by nothing.",
            cure="Leave `hours` out of the second slope.", see="two equal slopes, the first right"),
        Mistake("in the wrong order", edit(
                "float(np.mean(2 * error * hours)), float(np.mean(2 * error))",
                "float(np.mean(2 * error)), float(np.mean(2 * error * hours))",
            ),
            cause="The slope in the bias was returned first.",
            cure="Return (slope in the weight, slope in the bias).", see="the two numbers exchanged"),
        Mistake("the slope of the RMSE",
            edit("- jars", "- jars\n    error = error / (2 * np.sqrt(np.mean(error**2)))"),
            cause="This is the slope of the root: it is the slope of the MSE divided by twice the root, and it has no value where the fit is perfect.",
            cure="Leave the root out; what is asked for is the slope of the mean squared error.",
            see="slopes of the right direction and the wrong size, and NaN for a perfect fit"),
    ),
)
