"""The gradient of a layer's loss with rounded weights, handed to the float weights as if nothing had been rounded."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit
from .ternary_levels import ternary_levels


def restored(w):
    """What a file of ternary blocks gives back, a row as a block: (out, in) float64   ->   the same shape."""
    levels, scale = ternary_levels(w.astype(np.float32))
    return levels * scale.astype(np.float64)


def straight_through(x, y, w):
    """The gradient at the rounded weights, for the float weights.

    x: (n, in) float64, what n tokens bring into the layer; y: (n, out)
        float64, what should come out; w: (out, in) float64, the float
        weights
    ->   (out, in) float64, right to 1e-9

    The layer computes x @ r.T with r, which is ``restored(w)``. Its loss is
    the mean over the tokens of the sum of the squares of what comes out
    minus y. The result is the derivative of the loss by each weight of r.
    """
    off = x @ restored(w).T - y  # (n, out)
    return 2 * off.T @ x / len(x)


def oracle(x, y, w):
    """Weight by weight: the loss is a parabola in each weight of r, so two steps give its slope exactly."""
    r, rows, wanted = restored(w).tolist(), x.tolist(), y.tolist()
    out = np.zeros(w.shape)
    for o, weights in enumerate(r):
        errors = [math.fsum(a * b for a, b in zip(row, weights)) - target[o] for row, target in zip(rows, wanted)]
        for i in range(len(weights)):
            up, down = (math.fsum((e + h * row[i]) ** 2 for e, row in zip(errors, rows)) for h in (1.0, -1.0))
            out[o, i] = (up - down) / (2 * len(rows))
    return out


def cases(random):
    """One weight, two, two outputs, one token, zeros, drawn ones."""
    made = [
        ([[2.0]], [[1.0]], [[0.75]]),
        ([[1.0, 0.0], [0.0, 1.0]], [[1.0], [0.0]], [[0.5, 0.125]]),
        ([[1.0, 2.0]], [[0.5, -0.5]], [[1.0, 0.25], [-0.5, 2.0]]),
        ([[1.0, 2.0], [0.0, 1.0], [3.0, -1.0]], [[0.0], [1.0], [2.0]], [[0.0, 0.0]]),
        ([[0.0, 0.0]], [[1.0]], [[0.5, -0.5]]),
    ]
    drawn = [(random.normal(0, 1, (n, i)), random.normal(0, 1, (n, o)), random.normal(0, 0.5, (o, i))) for n, i, o in ((5, 4, 3), (3, 8, 2), (7, 3, 6))]
    drawn[2][0][3] = 0  # a token of zeros counts
    return [tuple(np.array(part, float) for part in case) for case in (*made, *drawn)]


EXERCISE = Exercise(
    goal="Compute the gradient at the rounded weights, to be used for the float weights.",
    reference=straight_through, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-9,
    hints=(
        "Run the layer with what the file would give back, and see how far it is off. An output that is too high must go down, and each of its weights has as much to do with that as the number that it was multiplied by.",
        "What is off has the shape (n, out), and `off.T @ x` adds up over the tokens. A square has the derivative 2 × the number, and the mean divides by the tokens.",
    ),
    why="the weights that are used are rounded, and the weights that learn are not.",
    mistakes=(
        Mistake("the float weights used", edit("restored(w).T", "w.T"),
            cause="The layer ran with its float weights. Then the training never learns what rounding does.",
            cure="Use `restored(w)` on the way forward.", see="right where rounding changes nothing"),
        Mistake("the sign", edit("x @ restored(w).T - y", "y - x @ restored(w).T"),
            cause="What comes out was subtracted from what should come out.",
            cure="Take the outputs minus y.", see="every number with the other sign"),
        Mistake("the 2 forgotten", edit("2 * off.T", "off.T"),
            cause="The derivative of a square is 2 × the number.",
            cure="Multiply by 2.", see="half of the expected numbers"),
        Mistake("the sum over the tokens", edit(" / len(x)", ""),
            cause="The losses of the tokens were added up, and their mean is asked for.",
            cure="Divide by the number of tokens.", see="right for one token"),
        Mistake("the mean over the outputs", edit("len(x)", "off.size"),
            cause="The mean was taken over tokens and outputs.",
            cure="Divide by the number of tokens.", see="right for one output"),
        Mistake("the inputs left out", edit("2 * off.T @ x / len(x)", "2 * off.T @ np.ones_like(x) / len(x)"),
            cause="All weights of a row got the same gradient, as if every input were 1.",
            cure="Multiply by the inputs, `off.T @ x`.", see="the same number in a whole row"),
        Mistake("transposed", edit("2 * off.T @ x", "2 * x.T @ off"),
            cause="The result has the shape (in, out).",
            cure="The weights are (out, in): `off.T @ x`.", see="the shape (in, out)"),
        Mistake("the errors' signs", edit("2 * off.T @ x", "2 * np.sign(off).T @ x"),
            cause="Only the signs of what is off were used.",
            cure="Use the numbers themselves.", see="whole multiples of the inputs"),
        Mistake("zero where the level is zero", edit("2 * off.T @ x / len(x)", "2 * (off.T @ x) * (restored(w) != 0) / len(x)"),
            cause="Weights whose level is 0 got no gradient. They could never leave 0 again.",
            cure="Give every weight its gradient.", see="0 where a level is 0"),
        Mistake("times the scale", edit("2 * off.T @ x / len(x)", "2 * off.T @ x / len(x) * np.abs(w).mean(axis=1, keepdims=True)"),
            cause="The gradient was multiplied by the scale, as if the levels were what learns.",
            cure="Return the derivative by the weights of r.", see="smaller numbers, row by row"),
    ),
)
