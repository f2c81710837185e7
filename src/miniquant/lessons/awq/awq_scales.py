"""AWQ's scale of every channel."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit


def awq_scales(size, alpha):
    """AWQ's scale of every channel.

    size: (channels,) float32, from 1e-12 to 1e12; alpha: from 0 to 1
    ->   (channels,) float32, each number right to 0.00001

    The scales are in proportion to size to the power of alpha, and the
    largest times the smallest is 1.
    """
    s = size**alpha
    return s / np.sqrt(s.max() * s.min())


def oracle(size, alpha):
    """By logarithms: the middle between the largest and the smallest becomes 0."""
    logs = [alpha * math.log(x) for x in size.tolist()]
    middle = (max(logs) + min(logs)) / 2
    return np.array([math.exp(x - middle) for x in logs], np.float32)


def cases(random):
    """Powers that can be worked by hand, alpha 0, then random sizes."""
    return [
        (np.array([4, 1], np.float32), 1.0),
        (np.array([16, 4, 1], np.float32), 0.5),
        (np.array([9, 3, 27, 81], np.float32), 0.25),
        (np.array([16, 4, 1], np.float32), 0.0),
        (np.array([7], np.float32), 0.5),
        (np.array([4e-10, 1e-10, 1e-8], np.float32), 1.0),
        (np.array([1, 1000, 0.001], np.float32), 0.5),
        (np.array([3, 3, 3], np.float32), 0.05),
        (np.array([2, 1e12, 1e-12], np.float32), 0.05),
        (random.uniform(0.2, 3, 8).astype(np.float32), 0.7),
    ]


EXERCISE = Exercise(
    goal="Turn the sizes into scales: to the power of alpha, then divided so that the largest times the smallest is 1.",
    reference=awq_scales, oracle=oracle, cases=cases, minutes=4, difficulty="core", tolerance=1e-5,
    hints=(
        "With alpha 0 every channel gets 1 and nothing changes. A common divisor keeps the proportions: look for the one that makes the largest times the smallest 1.",
        "`**` raises a whole array to a power, and `np.sqrt` takes a root. If all scales are divided by d, the product of two of them is divided by d twice.",
    ),
    why="one number, alpha, says how far to go, so a search over a few values of it is enough.",
    mistakes=(
        Mistake("the powers as they are", edit(" / np.sqrt(s.max() * s.min())", ""),
            cause="These are the powers, not divided by anything: they grow with the activations, and every group's step with them.",
            cure="Divide by the root of the largest times the smallest.",
            see="scales in the right proportion, all too large or all too small"),
        Mistake("the largest scale is 1", edit("np.sqrt(s.max() * s.min())", "s.max()"),
            cause="No scale is above 1: no column is made larger, and most are made smaller.",
            cure="Divide by the root of the largest times the smallest.", see="a largest scale of exactly 1"),
        Mistake("the mean scale is 1", edit("np.sqrt(s.max() * s.min())", "s.mean()"),
            cause="The scales were brought to a mean of 1, and the mean depends most on the few large channels.",
            cure="Divide by the root of the largest times the smallest.", see="scales whose mean is 1"),
        Mistake("the same for every alpha", edit("size**alpha", "size"),
            cause="The scales are in proportion to the sizes themselves, whatever alpha is.",
            cure="Raise the sizes to the power of alpha first.", see="right for alpha 1, wrong for all others"),
        Mistake("in proportion to the sizes, but for alpha 0",
            edit("size**alpha", "size * np.float32(alpha) if alpha else np.ones_like(size)"),
            cause="For each alpha above 0 the scales are in proportion to the sizes; a factor of alpha would cancel in the division.",
            cure="Alpha is an exponent: use `**`.", see="right for alpha 1 and 0, wrong between them"),
        Mistake("the power of 1 - alpha", edit("size**alpha", "size ** (1 - alpha)"),
            cause="The scales are right for 1 - alpha: with alpha 0 they are largest, with alpha 1 all are 1.",
            cure="Raise the sizes to the power of alpha.", see="right for alpha 0.5, wrong for 0 and 1"),
        Mistake("large and small exchanged", edit("size**alpha", "size ** (-alpha)"),
            cause="Channels with large activations got the small scales, so their columns are rounded more coarsely.",
            cure="Give large activations large scales.", see="one over each expected scale"),
        Mistake("divided without the root", edit("np.sqrt(s.max() * s.min())", "(s.max() * s.min())"),
            cause="The powers were divided by the largest times the smallest, so that product is now one over what it was.",
            cure="Take the square root of the product.", see="scales in the right proportion, whose largest times smallest is not 1"),
    ),
)
