"""AWQ's scale of every channel."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit


def awq_scales(size, alpha):
    """AWQ's scale of every channel.

    size: (channels,) float32, all above 0; alpha: from 0 to 1   ->   (channels,) float32: size to the power of alpha,
    divided by the square root of its largest times its smallest
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
        (np.array([5, 2, 7], np.float32), 0.0),
        (random.uniform(0.2, 3, 8).astype(np.float32), 0.7),
    ]


EXERCISE = Exercise(
    goal="Turn the sizes into scales: to the power of alpha, then divided so that the largest times the smallest is 1.",
    reference=awq_scales, oracle=oracle, cases=cases, minutes=4, difficulty="core", tolerance=1e-5,
    hints=(
        "With alpha 0 every channel gets 1 and nothing changes; with alpha 1 the sizes themselves decide.",
        "`**` raises a whole array to a power. Normalise after that: divide by the square root, `np.sqrt`, of the largest times the smallest.",
    ),
    why="one number, alpha, says how far to go, so that a search over a few dozen values is enough.",
    mistakes=(
        Mistake("not normalised", edit(" / np.sqrt(s.max() * s.min())", ""),
            cause="The scales grow with the activations, and the step of every group with them.",
            cure="Divide by `np.sqrt(s.max() * s.min())`.",
            see="scales in the right proportion, all too large or too small"),
        Mistake("divided by the largest", edit("np.sqrt(s.max() * s.min())", "s.max()"),
            cause="Now no scale is above 1: no column is made larger, and most are made smaller.",
            cure="Divide by the root of the largest times the smallest.", see="a largest scale of exactly 1"),
        Mistake("divided by the mean", edit("np.sqrt(s.max() * s.min())", "s.mean()"),
            cause="The mean hangs on the few large channels; AWQ puts the middle of the range at 1.",
            cure="Divide by the root of the largest times the smallest.", see="scales in the right proportion"),
        Mistake("alpha left out", edit("size**alpha", "size"),
            cause="The sizes themselves became the scales, whatever alpha is.",
            cure="Raise them to the power of alpha first.", see="right for alpha 1 alone"),
        Mistake("multiplied by alpha",
            edit("size**alpha", "size * np.float32(alpha) if alpha else np.ones_like(size)"),
            cause="A factor disappears in the normalisation; alpha is an exponent.",
            cure="Write `size**alpha`.", see="right for alpha 1 and 0 alone"),
        Mistake("one minus alpha", edit("size**alpha", "size ** (1 - alpha)"),
            cause="The exponent runs backwards: 1 - alpha belongs to the weights in SmoothQuant.",
            cure="Write `size**alpha`.", see="right for alpha 0.5 alone"),
        Mistake("the other way round", edit("size**alpha", "size ** (-alpha)"),
            cause="Channels with large activations got the small scales, so their columns are rounded more coarsely.",
            cure="Give large activations large scales.", see="one over what is expected"),
        Mistake("no root", edit("np.sqrt(s.max() * s.min())", "(s.max() * s.min())"),
            cause="Dividing by the product makes the largest times the smallest one over that product.",
            cure="Take the square root of the product.", see="scales in the right proportion"),
    ),
)
