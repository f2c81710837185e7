"""What GPTQ knows of the calibration text."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit


def damped_hessian(x, damping):
    """What GPTQ knows of the calibration text.

    x: (tokens, in) float64; damping: a float from 0 on, usually 0.01
    ->   (in, in) float64: H = XᵀX / tokens, plus damping × mean(diagonal of
         H) on the diagonal, right to 1e-9
    """
    h = x.T @ x / len(x)
    return h + damping * np.diag(h).mean() * np.eye(len(h))


def oracle(x, damping):
    """Sums written out, entry by entry."""
    rows = x.tolist()
    width = len(rows[0])
    h = [[math.fsum(row[a] * row[b] for row in rows) / len(rows) for b in range(width)] for a in range(width)]
    extra = damping * math.fsum(h[a][a] for a in range(width)) / width
    return np.array([[h[a][b] + (extra if a == b else 0.0) for b in range(width)] for a in range(width)])


def cases(random):
    """Small texts, equal columns without damping, random activations, a column of zeros, zeros alone, one channel, one token."""
    return [
        (np.array([[1.0, 2.0], [3.0, 4.0]]), 1.5),
        (np.array([[2.0, 0.0, 1.0], [0.0, 2.0, 1.0]]), 0.25),
        (np.array([[1.0, 1.0], [0.0, 0.0], [2.0, 2.0], [3.0, 3.0]]), 0.0),  # no damping; two columns that are always equal
        (random.normal(0, [1, 4, 0.5, 2], (20, 4)), 0.1),
        (np.array([[1.0, 0.0, 2.0], [3.0, 0.0, -1.0]]), 0.5),  # a channel that is always 0
        (np.zeros((3, 2)), 0.25),
        (np.array([[2.0], [-1.0], [1.0]]), 0.25),
        (np.array([[0.002, -0.001, 0.003]]), 0.01),
    ]


EXERCISE = Exercise(
    goal="Sum up the calibration text in one matrix, XᵀX / n, and add a part of its mean diagonal to the diagonal.",
    reference=damped_hessian, oracle=oracle, cases=cases, minutes=5, difficulty="core", tolerance=1e-9,
    hints=(
        "x has a row for each token, so its transpose times itself has a row and a column for each input channel. Damping changes the diagonal alone.",
        "`@` multiplies matrices, `np.diag` gives the diagonal, and `np.eye` is a matrix that is 1 there and 0 elsewhere.",
    ),
    why="everything that GPTQ knows of the text is in here; damping makes it invertible and the corrections modest.",
    mistakes=(
        Mistake("no damping", edit(" + damping * np.diag(h).mean() * np.eye(len(h))", ""),
            cause="Nothing was added to the diagonal. Two channels that always move together then make a matrix without an inverse.",
            cure="Add damping × the mean of the diagonal to the diagonal.", see="a diagonal that is too small, everything else right"),
        Mistake("damping not in proportion", edit(" * np.diag(h).mean()", ""),
            cause="The damping itself was added. 0.01 is a lot for a layer with small activations and nothing for one with large ones.",
            cure="Multiply it by the mean of the diagonal.", see="a diagonal that is off by the same number everywhere"),
        Mistake("damping on every entry", edit(" * np.eye(len(h))", ""),
            cause="Every entry is larger, not the diagonal alone. Two channels that are always equal stay equal, and the matrix has no inverse.",
            cure="Add to the diagonal alone.", see="the diagonal right, all other entries too large"),
        Mistake("tokens by tokens", edit("x.T @ x", "x @ x.T").edit("/ len(x)", "/ x.shape[1]"),
            cause="This matrix compares tokens with each other; GPTQ needs to know which channels move together.",
            cure="The transpose comes first.", see="a row for each token, unless there are as many tokens as channels"),
        Mistake("a sum instead of a mean", edit(" / len(x)", ""),
            cause="The matrix grows with the amount of text.",
            cure="Divide by the number of tokens.", see="every entry too large by a factor, the number of tokens"),
        Mistake("divided by the channels", edit("len(x)", "x.shape[1]"),
            cause="The sums were divided by the number of channels.",
            cure="Divide by the number of tokens.", see="right where there are as many tokens as channels"),
        Mistake("damped by the sum", edit(".mean()", ".sum()"),
            cause="The sum of the diagonal was used, which is the mean times the number of channels.",
            cure="Use the mean.", see="a diagonal that is too large, everything else right"),
    ),
)
