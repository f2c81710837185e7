"""One neuron: what it computes."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from .toys import HOURS, START, days


def predict_jars(weight, bias, hours):
    """What one neuron predicts.

    weight, bias: floats, hours: (n,) float64   ->   jars: (n,) float64
    """
    return weight * hours + bias


def oracle(weight, bias, hours):
    """One day after the other."""
    return np.array([bias + weight * float(hour) for hour in hours])


def cases(random):
    """One day, four days, then random lines."""
    made = [(2.0, 1.0, np.array([3.0])), (2.0, 0.0, HOURS), (*START, HOURS), (0.0, 1.5, HOURS)]
    return [*made, *((weight, bias, days(random, 5)[0]) for weight, bias in random.normal(0, 2, (3, 2)).tolist())]


EXERCISE = Exercise(
    goal="Compute what one neuron predicts: hours of sunshine in, jars out.",
    reference=predict_jars, oracle=oracle, cases=cases, minutes=2, difficulty="warm-up", tolerance=1e-9,
    hints=(
        "A neuron multiplies its input by the weight and adds the bias; numpy does it for all days at once.",
        "`weight * hours + bias` is all of it.",
    ),
    why="a layer of MiniGPT is this line with a matrix for the weight.",
    mistakes=(
        Mistake("no bias", edit(" + bias", ""),
            cause="The bias is not added, so every line goes through zero.",
            cure="Add `bias` after the multiplication.", see="6 where 7 is expected"),
        Mistake("the bias inside the product", edit("hours + bias", "(hours + bias)"),
            cause="The bias is added to the hours, and then multiplied as well.",
            cure="Multiply first: `weight * hours + bias`.", see="8 where 7 is expected"),
        Mistake("the bias subtracted", edit("+", "-"),
            cause="The bias is subtracted; a neuron adds it, and learns a negative one where it needs to subtract.",
            cure="Add it.", see="5 where 7 is expected"),
        Mistake("weight and bias exchanged", edit("weight * hours + bias", "bias * hours + weight"),
            cause="The hours are multiplied by the bias, and the weight is added.",
            cure="The weight belongs to the input; the bias stands alone.", see="a line with the wrong slope"),
        Mistake("one number for all days", edit("weight * hours + bias", "float((weight * hours + bias).sum())"),
            cause="The days are added up, and each day wants a prediction of its own.",
            cure="Leave out the sum: one number in, one number out.", see="a float where an array is expected"),
        Mistake("whole jars", edit("weight * hours + bias", "np.rint(weight * hours + bias)"),
            cause="The predictions are rounded to whole jars; a rounded prediction has no slope to learn from.",
            cure="Return what the formula gives.", see="numbers without a fraction"),
    ),
)
