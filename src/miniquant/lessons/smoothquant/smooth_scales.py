"""What SmoothQuant divides each channel by."""

import numpy as np

from ...lab import Exercise, Mistake, edit


def smooth_scales(x, w, strength):
    """What SmoothQuant divides each channel by.

    x: (tokens, in), w: (out, in), both float32, no column all 0; strength: from 0 to 1   ->   (in,) float32: the
    largest abs(x) of the channel to the power of strength, over the largest abs(w) to the power of 1 - strength
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
    """One layer at several strengths, its negative, then random layers."""
    x, w = np.array([[16, -1], [4, 9]], np.float32), np.array([[4, 1], [-1, 0.25], [2, -0.5]], np.float32)
    large = random.normal(0, [1, 30, 0.5, 2], (20, 4)).astype(np.float32)
    square = random.normal(0, 1, (4, 4)).astype(np.float32)
    return [(x, w, 0.5), (x, w, 1.0), (x, w, 0.25), (-x, -w, 0.5), (large, square, 0.5), (large, square, 0.8)]


EXERCISE = Exercise(
    goal="Compute what SmoothQuant divides each channel by: max(abs(x)) to the strength over max(abs(w)) to the rest.",
    reference=smooth_scales, oracle=oracle, cases=cases, minutes=5, difficulty="core", tolerance=1e-4,
    hints=(
        "A channel is a column of x and a column of w: both maxima run along axis 0.",
        "Take the absolute values first, `np.abs`. Each maximum is raised to its power with `**`; the two exponents add up to 1.",
    ),
    why="with strength 0.5 activations and weights end up with the same range in every channel.",
    mistakes=(
        Mistake("the exponents exchanged", edit("** strength", "** (1 - strength)").edit(
                "np.abs(w).max(axis=0) ** (1 - strength)", "np.abs(w).max(axis=0) ** strength"
            ),
            cause="The strength is how much of the difficulty goes to the weights; it belongs to the activations' maximum.",
            cure="Raise the maximum of x to `strength` and that of w to `1 - strength`.",
            see="right for strength 0.5 alone"),
        Mistake("multiplied instead of divided", edit("strength / np", "strength * np"),
            cause="A column of large weights has no room for more, so it must get a smaller scale.",
            cure="Divide by the weights' part.", see="scales too large where the weights are large"),
        Mistake("rows of w", edit("np.abs(w).max(axis=0)", "np.abs(w).max(axis=1)"),
            cause="`axis=1` takes the maximum of each output; a channel is a column.",
            cure="Use `axis=0` for both.", see="other numbers, or an error about shapes"),
        Mistake("no absolute value", edit("np.abs(x).max(axis=0)", "np.maximum(x.max(axis=0), np.float32(1e-5))"),
            cause="The largest number of a channel may be negative.",
            cure="Take `np.abs(x)` first.", see="scales too small where the largest activation is negative"),
        Mistake("means instead of maxima", edit("np.abs(x).max(axis=0)", "np.abs(x).mean(axis=0)"),
            cause="That is what AWQ looks at; the scale of eight bits is set by the largest activation.",
            cure="Take the maximum.", see="scales that are too small"),
        Mistake("the inverse", edit(
                "np.abs(x).max(axis=0) ** strength / np.abs(w).max(axis=0) ** (1 - strength)",
                "np.abs(w).max(axis=0) ** (1 - strength) / np.abs(x).max(axis=0) ** strength",
            ),
            cause="That is what the weights are divided by, or the activations multiplied by.",
            cure="Turn it over.", see="one over what is expected"),
        Mistake("the weights left out", edit(" / np.abs(w).max(axis=0) ** (1 - strength)", ""),
            cause="Only the activations were looked at.",
            cure="Divide by the maximum of the column of w to the power of 1 - strength.",
            see="right for strength 1 alone"),
    ),
)
