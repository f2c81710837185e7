"""One neuron: what it computes."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from .toys import HOURS, START, days


def predict_jars(weight, bias, hours):
    """What one neuron predicts: the hours times the weight, plus the bias.

    weight, bias: floats; hours: (n,) float64, one number a day, n may be 0
    ->   jars: (n,) float64, one number a day

    Compute in float64 and do not round: a difference of up to 1e-9 is
    allowed.
    """
    return weight * hours + bias


def oracle(weight, bias, hours):
    """One day after the other."""
    return np.array([bias + weight * float(hour) for hour in hours])


def cases(random):
    """One day, four days, none, then random lines."""
    made = [(2.0, 1.0, np.array([3.0])), (1.0, 0.0, HOURS), (*START, HOURS), (0.0, 1.5, HOURS), (2.0, 1.0, np.zeros(0)), (-2.0, 1.5, np.array([3.0, 0.0, 3.0])), (2.0, 1.0, np.array([30.0, -2.0]))]
    made.append((2.0, 1.0, np.array([0.0])))  # the numbers of the first case, and another day
    return [*made, *((weight, bias, days(random, 5)[0]) for weight, bias in random.normal(0, 2, (2, 2)).tolist())]


EXERCISE = Exercise(
    goal="Compute what one neuron predicts: hours of sunshine in, jars out.",
    reference=predict_jars, oracle=oracle, cases=cases, minutes=2, difficulty="warm-up", tolerance=1e-9,
    hints=(
        "A neuron multiplies its input by the weight and adds the bias; numpy does it for all days at once.",
        "`*` and `+` between a number and an array work on every element; no loop is needed.",
    ),
    why="a layer of MiniGPT is this line with a matrix for the weight.",
    mistakes=(
        Mistake("no bias", edit(" + bias", ""),
            cause="The bias is not added, so every line goes through zero.",
            cure="Add `bias` after the multiplication.", see="6 where 7 is expected"),
        Mistake("the bias inside the product", edit("hours + bias", "(hours + bias)"),
            cause="The bias is multiplied by the weight, too.",
            cure="Multiply first: `weight * hours + bias`.", see="8 where 7 is expected"),
        Mistake("the bias subtracted", edit("+", "-"),
            cause="The bias is subtracted; a neuron adds it. Where it needs to subtract, it learns a negative bias.",
            cure="Add it.", see="5 where 7 is expected"),
        Mistake("weight and bias exchanged", edit("weight * hours + bias", "bias * hours + weight"),
            cause="These are the hours times the bias, plus the weight.",
            cure="The weight belongs to the input; the bias stands alone.", see="a line with the wrong slope"),
        Mistake("one number for all days", edit("weight * hours + bias", "float((weight * hours + bias).sum())"),
            cause="There is one number for all days, and each day needs its own prediction.",
            cure="Leave out the sum: return one number for each day.", see="a float where an array is expected"),
        Mistake("whole jars", edit("weight * hours + bias", "np.rint(weight * hours + bias)"),
            cause="The predictions are rounded to whole jars; a rounded prediction has no slope to learn from.",
            cure="Return what the formula gives.", see="numbers without a fraction"),
        Mistake("a list", edit('weight * hours + bias', '[weight * hour + bias for hour in hours]'),
            cause='The numbers are right, but in a list.',
            cure='Return an array: without a loop, or with `np.array(...)` around the list.', see='a list where an array is expected'),
        Mistake("no negative jars", edit('weight * hours + bias', 'np.maximum(0, weight * hours + bias)'),
            cause="Negative predictions come out as 0. A neuron returns what its formula gives.",
            cure='Leave out the maximum.', see='0 where a negative number is expected'),
        Mistake("the sign lost", edit('weight * hours + bias', 'np.abs(weight * hours + bias)'),
            cause="Negative predictions come out positive.",
            cure='Return what the formula gives.', see='a positive number where a negative one is expected'),
        Mistake("float32", edit('weight * hours + bias', '(weight * hours + bias).astype(np.float32)'),
            cause="The result is float32, and float64 is expected.",
            cure='Leave the type as it is.', see='float32 where float64 is expected'),
        Mistake("the bias once for each day", edit('weight * hours + bias', 'weight * hours + bias * len(hours)'),
            cause="The bias is in every prediction as often as there are days.",
            cure='Add it once to each prediction.', see='one day right, and four days too large'),
        Mistake("two decimals", edit('weight * hours + bias', 'np.round(weight * hours + bias, 2)'),
            cause='The predictions are rounded to two decimals.',
            cure='Return what the formula gives.', see='two decimals where more are expected'),
        Mistake("only the first day", edit('return weight * hours + bias', 'for hour in hours:\n        return weight * hour + bias'),
            cause="Only the first day is there; with no days there is nothing, None.",
            cure='Compute all days; numpy needs no loop for that.', see='one number where an array is expected'),
    ),
)
