"""What GPTQ knows of the calibration text."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit


def damped_hessian(x, damping):
    """What GPTQ knows of the calibration text.

    x: (tokens, in) float64; damping: a part, usually 0.01   ->   (in, in) float64: XᵀX / tokens, and on its diagonal
    damping times the mean of that diagonal more
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
    """Small texts, two columns that are always equal, then random activations."""
    return [
        (np.array([[1.0, 2.0], [3.0, 4.0]]), 0.5),
        (np.array([[2.0, 0.0, 1.0], [0.0, 2.0, 1.0]]), 0.25),
        (np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [0.0, 0.0]]), 0.01),  # two columns that are always equal
        (random.normal(0, [1, 4, 0.5, 2], (20, 4)), 0.1),
    ]


EXERCISE = Exercise(
    goal="Sum up the calibration text in one matrix, XᵀX / n, and add a part of its mean diagonal to the diagonal.",
    reference=damped_hessian, oracle=oracle, cases=cases, minutes=5, difficulty="core", tolerance=1e-6,
    hints=(
        "x has a row for each token, so its transpose times itself has a row and a column for each input channel.",
        "`@` multiplies matrices, `np.diag` gives the diagonal, and `np.eye` is a matrix that is 1 there and 0 elsewhere.",
    ),
    why="everything that GPTQ knows of the text is in here; damping keeps it invertible and the corrections modest.",
    mistakes=(
        Mistake("not damped", edit(" + damping * np.diag(h).mean() * np.eye(len(h))", ""),
            cause="Two channels that always move together make the matrix singular, and it cannot be inverted.",
            cure="Add damping × the mean of the diagonal to the diagonal.", see="a diagonal that is too small"),
        Mistake("damping as it stands", edit(" * np.diag(h).mean()", ""),
            cause="0.01 is a lot for a layer with small activations and nothing for one with large ones.",
            cure="Multiply it by the mean of the diagonal.", see="the diagonal wrong, everything else right"),
        Mistake("damping everywhere", edit(" * np.eye(len(h))", ""),
            cause="Every entry got larger, which ties all columns together and leaves a singular matrix singular.",
            cure="Add to the diagonal alone: `np.eye`.", see="entries beside the diagonal too large"),
        Mistake("tokens by tokens", edit("x.T @ x", "x @ x.T").edit("/ len(x)", "/ x.shape[1]"),
            cause="`x @ x.T` compares tokens with each other; GPTQ needs to know which channels move together.",
            cure="Write `x.T @ x`.", see="another shape, with a row for each token"),
        Mistake("a sum instead of a mean", edit(" / len(x)", ""),
            cause="The matrix grows with the amount of text.",
            cure="Divide by the number of tokens.", see="every entry too large by the same factor"),
        Mistake("divided by the channels", edit("len(x)", "x.shape[1]"),
            cause="`x.shape[1]` is the number of channels.",
            cure="Divide by the number of tokens, `len(x)`.", see="every entry wrong by the same factor"),
        Mistake("damped by the trace", edit(".mean()", ".sum()"),
            cause="The sum of the diagonal is larger than its mean by the number of channels.",
            cure="Use the mean.", see="a diagonal that is too large"),
    ),
)
