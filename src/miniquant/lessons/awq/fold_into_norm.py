"""A scale moves from a norm into the next layer."""

import numpy as np

from ...lab import Exercise, Mistake, edit


def fold_into_norm(gain, bias, weight, scale):
    """Move a scale from the activations into the weights.

    gain, bias, scale: (in,) float32, scale above 0; weight: (out, in)
        float32
    ->   gain, bias and weight as new float32 arrays, each number right to
         0.0001: what the norm gives is divided by the scale, and what the
         next layer computes stays the same
    """
    return gain / scale, bias / scale, weight * scale


def oracle(gain, bias, weight, scale):
    """One number at a time."""
    s = scale.tolist()
    rows = [[x * s[c] for c, x in enumerate(row)] for row in weight.tolist()]
    return (
        np.array([g / x for g, x in zip(gain, s)], np.float32),
        np.array([b / x for b, x in zip(bias, s)], np.float32),
        np.float32(rows),
    )


def cases(random):
    """Numbers that can be worked by hand, zeros, then random layers, the first with one output."""

    def drawn(out, width):
        parts = random.normal(1, 0.2, width), random.normal(0, 1, width), random.normal(0, 1, (out, width))
        return (*(part.astype(np.float32) for part in parts), np.exp(random.normal(0, 1, width)).astype(np.float32))

    gain, _, *rest = drawn(6, 3)
    return [
        (
            np.array([3, 1], np.float32),
            np.array([1, 2], np.float32),
            np.array([[5, 7], [1, 0]], np.float32),
            np.array([2, 0.25], np.float32),
        ),
        (
            np.array([1, 0, 1], np.float32),
            np.array([0, 6, -0.5], np.float32),
            np.eye(3, dtype=np.float32),
            np.array([1, 200, 0.005], np.float32),
        ),
        (
            np.array([1, -2], np.float32),
            np.array([-3, 0.5], np.float32),
            np.array([[1, 2], [-3, 4]], np.float32),
            np.ones(2, np.float32),  # nothing changes, and the arrays are new
        ),
        (
            np.array([8, 4], np.float32),
            np.array([-8, 2], np.float32),
            np.array([[6, -7], [5, 9]], np.float32),
            np.array([1.0078125, 0.9921875], np.float32),  # nearly 1, and not 1
        ),
        drawn(1, 4),
        (gain, np.zeros(3, np.float32), *rest),
    ]


EXERCISE = Exercise(
    goal="Divide what a LayerNorm gives by a scale for each channel, and let the next layer's weights make up for it.",
    reference=fold_into_norm, oracle=oracle, cases=cases, minutes=5, difficulty="core", tolerance=1e-4,
    hints=(
        "The next layer sees `gain * x + bias`. All of that must become smaller by the scale, channel by channel.",
        "Arrays of length `in` meet a matrix (out, in) column by column, and a channel is a column.",
    ),
    why="the model computes what it computed before, and the columns that matter are larger now when they are rounded.",
    mistakes=(
        Mistake("the bias multiplied", edit("bias / scale", "bias * scale"),
            cause="The bias of the norm is larger by the scale, while its gain is smaller by it.",
            cure="Divide the bias too: the next layer sees gain × x + bias as one number.",
            see="gain and weight right, each bias off by the square of its scale"),
        Mistake("the bias as it was", edit("bias / scale", "bias"),
            cause="The bias of the norm did not change, and the next layer's columns multiply it by the scale.",
            cure="Divide the bias as you divide the gain.", see="gain and weight right, the bias unchanged"),
        Mistake("the weight as it was", edit("weight * scale", "weight.copy()"),
            cause="The norm was divided, and nothing makes up for it.",
            cure="Multiply the columns of the weight by the scale.", see="gain and bias right, the weight unchanged"),
        Mistake("rows instead of columns", edit("weight * scale", "weight * scale[:, None]"),
            cause="The scales were used row by row, and a row is an output.",
            cure="Multiply column by column.",
            see="the weight wrong, or an error about shapes that do not fit"),
        Mistake("multiplied on both sides", edit("gain / scale, bias / scale", "gain * scale, bias * scale"),
            cause="Norm and weights are both larger, so every product has the scale in it twice.",
            cure="Divide in the norm, multiply in the weights.", see="the weight right, gain and bias multiplied"),
        Mistake("divided on both sides", edit("weight * scale", "weight / scale"),
            cause="Norm and weights are both smaller, so nothing makes up for the division.",
            cure="Multiply the columns.", see="gain and bias right, the weight divided"),
        Mistake("the other way round",
            edit("gain / scale, bias / scale, weight * scale", "gain * scale, bias * scale, weight / scale"),
            cause="The model computes the same, but the columns that matter became smaller, so they are rounded more coarsely.",
            cure="Divide in the norm, multiply in the weights.", see="everything the inverse of what is expected"),
        Mistake("the columns multiplied twice", edit("weight * scale", "weight * scale * scale"),
            cause="The columns are larger by the square of the scale. Gain and bias are divided as one sum, so once is enough.",
            cure="Multiply the columns by the scale once.",
            see="gain and bias right, each column off by its scale once more"),
    ),
)
