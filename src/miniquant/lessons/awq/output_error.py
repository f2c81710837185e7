"""How far the outputs of a layer move."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit


def output_error(x, change):
    """How far the outputs of a layer move when its weights change.

    x: (tokens, in) float64, what reaches the layer; change: (out, in)
        float64, the new weights minus the old ones
    ->   float, right to 1e-9: each token has a sum, that of the squares by
         which its outputs move; the result is the mean of these sums
    """
    moved = x @ change.T  # (tokens, out)
    return float(np.square(moved).sum(axis=1).mean())


def oracle(x, change):
    """Output by output, one product at a time."""
    rows, weights = x.tolist(), change.tolist()
    moves = [[math.fsum(a * b for a, b in zip(row, w)) for w in weights] for row in rows]
    return math.fsum(move * move for row in moves for move in row) / len(rows)


def cases(random):
    """One token, changes that cancel, a token of zeros, a random layer, then no change."""
    return [
        (np.array([[3.0, 1.0]]), np.array([[1.0, 0.0], [0.0, -2.0]])),
        (np.array([[2.0, 1.0], [4.0, 2.0]]), np.array([[1.0, -2.0], [0.0, 0.0], [0.5, 0.0], [0.0, 1.0]])),  # the first row cancels
        (np.array([[1.0, -1.0, 2.0], [0.0, 0.0, 0.0], [0.0, 3.0, 1.0]]), np.array([[0.25, 0.5, -0.5]])),
        (random.normal(0, [1, 5, 0.2, 2], (12, 4)), random.normal(0, 0.1, (6, 4))),
        (-abs(random.normal(0, 1, (2, 2))), np.zeros((3, 2))),
    ]


EXERCISE = Exercise(
    goal="Measure what a change of the weights does to a layer: by how much its outputs move, squared.",
    reference=output_error, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up", tolerance=1e-9,
    hints=(
        "An output is a sum of activations times weights. If the weights change, the output moves by the sum of activations times changes.",
        "`@` with the transpose `.T` gives one move for each token and output. Then square, add up along axis 1, and average.",
    ),
    why="a small change of a weight is harmless or not, and the activations decide; now you can measure it.",
    mistakes=(
        Mistake("the mean over the outputs, too", edit(".sum(axis=1).mean()", ".mean()"),
            cause="The squares were averaged over tokens and outputs; the outputs of a token are to be added up.",
            cure="Add up the squares of a token before you average.", see="numbers too small by a factor, the number of outputs"),
        Mistake("the sum over the tokens, too", edit(".sum(axis=1).mean()", ".sum()"),
            cause="All squares were added up, so the number grows with the amount of text.",
            cure="Average over the tokens.", see="numbers too large by a factor, the number of tokens"),
        Mistake("sums over tokens, averaged over outputs", edit("axis=1", "axis=0"),
            cause="The squares were added up over the tokens and averaged over the outputs; it is asked the other way round.",
            cure="Add up along axis 1, which has the outputs.", see="right where there are as many tokens as outputs"),
        Mistake("sizes instead of squares", edit("np.square(moved)", "np.abs(moved)"),
            cause="The sizes of the moves were added up, not their squares.",
            cure="Square the moves.", see="wrong, except where the moves are 0 and 1"),
        Mistake("squared after adding", edit("np.square(moved).sum(axis=1)", "np.square(moved.sum(axis=1))"),
            cause="The moves of a token were added first, so moves in opposite directions cancel.",
            cure="Square each move, and add after that.", see="right where there is one output"),
        Mistake("the square root of it", edit("float(np.square(moved).sum(axis=1).mean())", "float(np.sqrt(np.square(moved).sum(axis=1).mean()))"),
            cause="This is the root of what is asked.",
            cure="Leave out the root.", see="the square root of each expected number"),
        Mistake("the activations left out", edit("moved = x @ change.T", "moved = change"),
            cause="This measures the change of the weights alone, as a mean over rows; what they are multiplied by does not count.",
            cure="Multiply the activations with the change.", see="numbers that do not depend on x"),
    ),
)
