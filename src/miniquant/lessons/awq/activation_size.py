"""How large the numbers of each channel are."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit


def activation_size(x):
    """How large the numbers of each channel are.

    x: (tokens, channels) float32
    ->   (channels,) float32, the mean of the absolute values over the
         tokens, each number right to 0.00001
    """
    return np.abs(x).mean(axis=0)


def oracle(x):
    """One channel after another, one number at a time."""
    rows = x.tolist()
    return np.array([math.fsum(abs(row[c]) for row in rows) / len(rows) for c in range(len(rows[0]))], np.float32)


def cases(random):
    """Two channels, three, some that cancel, one token, all below 0, random activations, then one channel of zeros."""
    return [
        (np.array([[1, -10], [-3, 30]], np.float32),),
        (np.array([[1, 2, 3], [-1, -2, -3], [4, 8, 12], [0, 0, 0]], np.float32),),
        (np.array([[0.5, -100], [1.5, 100]], np.float32),),
        (np.array([[-2, 0, -3, -0.5]], np.float32),),
        (random.normal(0, [1, 5, 0.001, 2, 1], (150, 5)).astype(np.float32),),
        (np.zeros((3, 1), np.float32),),
    ]


EXERCISE = Exercise(
    goal="Measure how large the numbers of each input channel are: the mean of their absolute values over all tokens.",
    reference=activation_size, oracle=oracle, cases=cases, minutes=3, difficulty="warm-up", tolerance=1e-5,
    hints=(
        "A row is a token and a column is a channel: the mean runs over the tokens, and one number a channel is left.",
        "`np.abs(x)` first, then `.mean(axis=0)`.",
    ),
    why="a column of weights matters as much as the activations that it is multiplied by, and now you know those.",
    mistakes=(
        Mistake("the mean with signs", edit("np.abs(x).mean(axis=0)", "x.mean(axis=0)"),
            cause="These are the plain means: positive and negative activations cancel, and a channel of ±30 looks like nothing.",
            cure="Take `np.abs(x)` before the mean.", see="numbers near 0, some of them negative"),
        Mistake("the size of the mean", edit("np.abs(x).mean(axis=0)", "np.abs(x.mean(axis=0))"),
            cause="These are the sizes of the plain means, in which positive and negative activations have cancelled already.",
            cure="Take the absolute values first and the mean after that.", see="positive numbers that are too small"),
        Mistake("one number for each token", edit("axis=0", "axis=1"),
            cause="These are the means of the tokens, each taken over its channels.",
            cure="Average over the tokens: that is axis 0.", see="as many numbers as there are tokens"),
        Mistake("the largest instead of the mean", edit("mean(", "max("),
            cause="Each number is the largest of its channel. SmoothQuant uses those; for AWQ one large activation is not enough.",
            cure="Take the mean.", see="numbers that are too large, each of them the size of an element of x"),
        Mistake("the root mean square", edit("np.abs(x).mean(axis=0)", "np.sqrt((x**2).mean(axis=0))"),
            cause="Each number is the root of the mean square, to which large activations contribute more.",
            cure="Take the mean of the absolute values.", see="numbers somewhat too large"),
        Mistake("the sum instead of the mean", edit("mean(", "sum("),
            cause="Each number is a sum, which grows with the amount of text.",
            cure="Divide by the number of tokens.", see="numbers too large by a factor, the number of tokens"),
    ),
)
