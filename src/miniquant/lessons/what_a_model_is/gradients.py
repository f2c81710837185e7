"""Training one neuron: which way is down."""

import math

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from .toys import HOURS, JARS, START, days


def gradients(weight, bias, hours, jars):
    """The two slopes of the mean squared error of ``weight * hours +
    bias``: its derivatives in weight and bias.

    weight, bias: floats; hours, jars: (n,) float64, n at least 1
    ->   (slope in the weight, slope in the bias), a tuple of two floats

    Compute in float64 and do not round: a difference of up to 1e-9 is
    allowed.
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
        (2.0, 2.0**-14, HOURS, JARS),  # small errors
        (1.0, 3.0, np.array([0.0]), np.array([0.0])),
        (2.0, -1.0, np.array([-0.5, 8.0]), np.array([-3.0, 4.0])),
        (2.0, -1.0, np.array([0.0, 2.0, 4.0]), np.array([1.0, -3.0, 2.0])),
        (2.0, -1.0, np.array([2.0, 4.0, 2.0]), np.array([3.0, 3.0, 7.0])),  # two days of the same hours; the errors are 0, 4 and -4
    ]
    return [*made, *((weight, bias, *days(random, 6)) for weight, bias in random.normal(0, 2, (3, 2)).tolist())]


def quantities(weight, bias, hours, jars):
    """Other means than the right ones."""
    error = weight * hours + bias - jars
    return {
        "the mean of the errors' signs": float(np.sign(error).mean()),
        "the mean of the hours times the errors' signs": float((np.sign(error) * hours).mean()),
        "the error of the last day": float(error[-1]),
        "the error of the last day times its hours": float(error[-1] * hours[-1]),
        "there is more than one day": len(hours) > 1,
        "there are positive and negative errors": bool(error.max() > 0 > error.min()),
    }


EXERCISE = Exercise(
    goal="Compute the slope of the mean squared error in the weight, and its slope in the bias.",
    reference=gradients, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-9, quantities=quantities,
    hints=(
        "Compute the error of every day first. Each slope is a mean over the days of two times the error times something.",
        "The something is what the weight is multiplied by, or what the bias is multiplied by. Take the means with `np.mean`.",
    ),
    why="`loss.backward()` computes exactly this, for millions of weights.",
    mistakes=(
        Mistake("the sign reversed", edit("weight * hours + bias - jars", "jars - (weight * hours + bias)"),
            cause="Both slopes point the wrong way, as with actual minus predicted for the error.",
            cure="Take the prediction minus the jars.", see="12 where -12 is expected"),
        Mistake("the 2 forgotten", edit("2 * error * hours", "error * hours").edit("2 * ", ""),
            cause="Both slopes are half as large: the derivative of e² is 2e.",
            cure="Multiply by 2; without it your steps are half as large as PyTorch's.", see="both slopes half as large"),
        Mistake("a sum instead of the mean",
            edit("return float(np.mean", "return float(np.sum").edit("np.mean", "np.sum"),
            cause="The slopes of all days are added up; the slope of a mean is their mean.",
            cure="Use `np.mean`.", see="one day right, and four days four times too large"),
        Mistake("the hours forgotten", edit("error * hours", "error"),
            cause="The slope in the weight is the one in the bias: it lacks the factor `hours`.",
            cure="Multiply by `hours` in the first of the two.", see="two equal slopes"),
        Mistake("the hours in the bias too", edit("error))", "error * hours))"),
            cause="The slope in the bias is the one in the weight, with the factor `hours`; the bias is multiplied by nothing.",
            cure="Leave `hours` out of the second slope.", see="two equal slopes, the first right"),
        Mistake("in the wrong order", edit(
                "float(np.mean(2 * error * hours)), float(np.mean(2 * error))",
                "float(np.mean(2 * error)), float(np.mean(2 * error * hours))",
            ),
            cause="The slope in the bias comes first.",
            cure="Return (slope in the weight, slope in the bias).", see="the two numbers exchanged"),
        Mistake("the slope of the RMSE",
            edit("- jars", "- jars\n    error = error / (2 * np.sqrt(np.mean(error**2)))"),
            cause="This is the slope of the root: it is the slope of the MSE divided by twice the root, and it has no value where the fit is perfect.",
            cure="Leave the root out; what is asked for is the slope of the mean squared error.",
            see="slopes of the right direction and the wrong size, and NaN for a perfect fit"),
        Mistake("no bias", body("""
                error = weight * hours - jars
                return float(np.mean(2 * error * hours)), float(np.mean(2 * error))
            """),
            cause="These are the slopes for a bias of 0.",
            cure='The error is `weight * hours + bias - jars`.', see='right where the bias is 0, and wrong elsewhere'),
        Mistake("the weight for the hours", body("""
                error = weight * hours + bias - jars
                return float(np.mean(2 * error * weight)), float(np.mean(2 * error))
            """),
            cause="The slope in the weight has the factor `weight` in place of the factor `hours`.",
            cure='Multiply the error by `hours`.', see='-4 where -12 is expected'),
        Mistake("the error squared", body("""
                error = weight * hours + bias - jars
                return float(np.mean(2 * error**2 * hours)), float(np.mean(2 * error**2))
            """),
            cause="These are the means of 2e² and 2e² times the hours; the derivative of e² is 2e.",
            cure='Leave out the square.', see='24 where -12 is expected'),
        Mistake("a product of means", body("""
                error = weight * hours + bias - jars
                return float(2 * np.mean(error) * np.mean(hours)), float(2 * np.mean(error))
            """),
            cause="The slope in the weight is a product of two means; the mean of a product is in general another number.",
            cure='Multiply the error of each day by its hours, then take the mean.', see="one day right, and the first of four days' slopes wrong"),
        Mistake("the sign of the error lost", body("""
                error = np.abs(weight * hours + bias - jars)
                return float(np.mean(2 * error * hours)), float(np.mean(2 * error))
            """),
            cause="Each error counts with its size and without its sign, so a line that is too low and one that is too high by as much have the same slopes.",
            cure='Leave out `abs`.', see='12 where -12 is expected, and other slopes right'),
        Mistake("no mean", body("""
                error = weight * hours + bias - jars
                return 2 * error * hours, 2 * error
            """),
            cause='There is one slope for each day; the mean is missing.',
            cure='Take `np.mean` of both.', see='arrays where floats are expected'),
        Mistake("the 2 in one slope only", body("""
                error = weight * hours + bias - jars
                return float(np.mean(2 * error * hours)), float(np.mean(error))
            """),
            cause="The second slope is half as large: the derivative of e² is 2e.",
            cure='Multiply both by 2.', see='the first right, the second half as large'),
        Mistake("an array", body("""
                error = weight * hours + bias - jars
                return np.array([np.mean(2 * error * hours), np.mean(2 * error)])
            """),
            cause='The numbers are right, but in an array.',
            cure='Return a tuple of two floats.', see='an array where a tuple is expected'),
    ),
)
