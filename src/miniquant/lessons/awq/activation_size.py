"""How large the numbers of each channel are."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit


def activation_size(x):
    """How large the numbers of each channel are.

    x: (tokens, channels) float32   ->   (channels,) float32, the mean of the absolute values over the tokens
    """
    return np.abs(x).mean(axis=0)


def oracle(x):
    """One channel after another, one number at a time."""
    rows = x.tolist()
    return np.array([math.fsum(abs(row[c]) for row in rows) / len(rows) for c in range(len(rows[0]))], np.float32)


def cases(random):
    """Two channels, three, one that cancels, then random activations."""
    return [
        (np.array([[1, -10], [-3, 30]], np.float32),),
        (np.array([[1, 2, 3], [-1, -2, -3], [4, 8, 12], [0, 0, 0]], np.float32),),
        (np.array([[0.5, -100, 2, 0], [1.5, 50, -2, 0]], np.float32),),
        (random.normal(0, [1, 5, 0.1, 2, 1], (40, 5)).astype(np.float32),),
    ]


EXERCISE = Exercise(
    goal="Measure how large the numbers of each input channel are: the mean of their absolute values over all tokens.",
    reference=activation_size, oracle=oracle, cases=cases, minutes=3, difficulty="warm-up", tolerance=1e-4,
    hints=(
        "A row is a token and a column is a channel: the mean runs over the tokens, and one number a channel is left.",
        "`np.abs(x)` first, then `.mean(axis=0)`.",
    ),
    why="a column of weights matters as much as the activations that it is multiplied by, and now you know those.",
    mistakes=(
        Mistake("no absolute value", edit("np.abs(x).mean(axis=0)", "x.mean(axis=0)"),
            cause="Positive and negative activations cancel, and a channel of ±30 looks like nothing.",
            cure="Take `np.abs(x)` before the mean.", see="numbers near 0, some of them negative"),
        Mistake("absolute value too late", edit("np.abs(x).mean(axis=0)", "np.abs(x.mean(axis=0))"),
            cause="The mean was taken first, so positive and negative activations have cancelled already.",
            cure="Take `np.abs(x)` before the mean.", see="positive numbers that are too small"),
        Mistake("one number a token", edit("axis=0", "axis=1"),
            cause="`axis=1` averages the channels of each token.",
            cure="Average over the tokens: `axis=0`.", see="as many numbers as there are tokens"),
        Mistake("the largest instead of the mean", edit("mean(", "max("),
            cause="That is what SmoothQuant looks at; for AWQ a single large number does not make a channel important.",
            cure="Take the mean.", see="numbers that are too large, each a number of x"),
        Mistake("root mean square", edit("np.abs(x).mean(axis=0)", "np.sqrt((x**2).mean(axis=0))"),
            cause="Squares give a few large numbers more say than AWQ does.",
            cure="Take the mean of the absolute values.", see="numbers somewhat too large"),
        Mistake("a sum", edit("mean(", "sum("),
            cause="The sum grows with the amount of text.",
            cure="Divide by the number of tokens: `.mean`.", see="numbers too large by the number of tokens"),
    ),
)
