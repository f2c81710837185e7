"""What SmoothQuant divides each channel by."""

import numpy as np

from ...lab import Exercise, Mistake, edit


def smooth_scales(x, w, strength):
    """What SmoothQuant divides each channel by.

    x: (tokens, in), w: (out, in), both float32, no column all 0; strength:
        from 0 to 1
    ->   (in,) float32, above 0: for each channel, max(abs(x)) to the power
         of strength, divided by max(abs(w)) to the power of 1 - strength,
         right to 1e-4
    """
    return np.abs(x).max(axis=0) ** strength / np.abs(w).max(axis=0) ** (1 - strength)


def oracle(x, w, strength):
    """Channel by channel."""
    found = []
    for c in range(x.shape[1]):
        top = max(abs(row[c]) for row in x.tolist())
        column = max(abs(row[c]) for row in w.tolist())
        found.append(top**strength / column ** (1 - strength))
    return np.array(found, np.float32)


def cases(random):
    """One layer at several strengths, its negative, a layer with one output, one with one channel, strength 0, two with tiny numbers."""
    x, w = np.array([[16, -1], [4, 9]], np.float32), np.array([[4, 1], [-1, 0.25], [2, -0.5]], np.float32)
    large = random.normal(0, [1, 30, 0.5, 2], (20, 4)).astype(np.float32)
    square = random.normal(0, 1, (4, 4)).astype(np.float32)
    tiny = np.array([[4e-8, 1e-6, 3e-7]], np.float32), np.array([[1e-8, 2, -1e-7], [0, 1e-7, 0]], np.float32)
    tiniest = np.array([[4e-17, 1e-15, 3e-16]], np.float32), np.array([[1e-17, 2, -1e-16], [0, 1e-16, 0]], np.float32)
    more = [(x[::-1], w[::-1], 0.5), (x, w, 0.0), (*tiniest, 0.5), (*tiny, 0.75)]
    return [(x, w, 0.5), (x, w, 1.0), (x, w, 0.25), (-x, -w, 0.5), (large, square[:1], 0.7), (large[:, :1], square[:, :1], 0.8), *more]


EXERCISE = Exercise(
    goal="Compute what SmoothQuant divides each channel by, from the largest activation and the largest weight.",
    reference=smooth_scales, oracle=oracle, cases=cases, minutes=5, difficulty="core", tolerance=1e-4,
    hints=(
        "A channel is a column of x and a column of w. A channel with large activations gets a large divisor; one whose weights are large already gets a smaller one.",
        "Absolute values first, with `np.abs`, then the maximum along axis 0. `**` raises to a power; the two exponents add up to 1.",
    ),
    why="with strength 0.5, activations and weights have the same range in every channel.",
    mistakes=(
        Mistake("the exponents exchanged", edit("** strength", "** (1 - strength)").edit(
                "np.abs(w).max(axis=0) ** (1 - strength)", "np.abs(w).max(axis=0) ** strength"
            ),
            cause="These are the scales for 1 - strength: the larger the strength, the less is taken from the activations.",
            cure="The strength belongs to the maximum of x.",
            see="right for strength 0.5 alone"),
        Mistake("multiplied instead of divided", edit("strength / np", "strength * np"),
            cause="The two parts were multiplied. A column of large weights has no room for more, so its scale must be smaller.",
            cure="Divide by the weights' part.", see="scales too large where the weights are above 1, too small where they are below"),
        Mistake("rows of w", edit("np.abs(w).max(axis=0)", "np.abs(w).max(axis=1)"),
            cause="The maxima of w are those of its rows, which are outputs; a channel is a column.",
            cure="Use axis 0 for both.", see="other numbers, or an error about shapes"),
        Mistake("only positive activations", edit("np.abs(x).max(axis=0)", "np.maximum(x.max(axis=0), np.float32(1e-5))"),
            cause="Only the largest positive activation of each channel counted.",
            cure="Take absolute values first.", see="scales too small where the largest activation is negative"),
        Mistake("mean activations", edit("np.abs(x).max(axis=0)", "np.abs(x).mean(axis=0)"),
            cause="The mean of abs(x) was used, as AWQ does; the largest activation sets the scale of eight bits.",
            cure="Take the maximum.", see="scales that are too small"),
        Mistake("the inverse", edit(
                "np.abs(x).max(axis=0) ** strength / np.abs(w).max(axis=0) ** (1 - strength)",
                "np.abs(w).max(axis=0) ** (1 - strength) / np.abs(x).max(axis=0) ** strength",
            ),
            cause="That is what the activations would be multiplied by.",
            cure="Exchange numerator and denominator.", see="one over what is expected"),
        Mistake("the activations alone", edit(" / np.abs(w).max(axis=0) ** (1 - strength)", ""),
            cause="The scales do not depend on the weights.",
            cure="Divide by the weights' part.",
            see="right for strength 1 alone"),
    ),
)
