"""A whole matrix, column by column."""

import numpy as np

from ...lab import Exercise, Mistake, edit, omit
from .gptq_column import gptq_column


def gptq_matrix(w, scale, minimum, u):
    """Integers from 0 to 15 for a matrix, chosen column by column, from the
    first to the last.

    w: (out, in) float64; u: (in, in) float64, the factor of its Hessian's
        inverse
    scale, minimum: (out, groups) float32, one of each for a group; a row's
        first `in` / groups weights are its first group; scales are above 0
    ->   (out, in) int16

    When its turn comes, a column goes to the levels nearest to what it is
    by then; the columns after it make up for its change. The level of an
    integer q is q × scale + minimum, in float32 or float64: both are right.
    (weight - minimum) / scale is computed in float64, and halves are
    rounded to even.
    """
    left, q = w.copy(), np.zeros(w.shape, np.int16)
    size = w.shape[1] // scale.shape[1]
    for j in range(w.shape[1]):
        s, m = scale[:, j // size], minimum[:, j // size]
        q[:, j] = np.rint((left[:, j] - m) / s).clip(0, 15)
        left = gptq_column(left, j, q[:, j] * s + m, u)
    return q


def oracle(w, scale, minimum, u):
    """Row by row and weight by weight; no row knows of another."""
    factor, size, found = u.tolist(), w.shape[1] // scale.shape[1], []
    for row, scales, mins in zip(w.tolist(), scale.tolist(), minimum.tolist()):
        integers = []
        for j in range(len(row)):
            s, m = scales[j // size], mins[j // size]
            integers.append(max(0, min(15, round((row[j] - m) / s))))
            lost = row[j] - (integers[j] * s + m)
            for k in range(j + 1, len(row)):
                row[k] -= lost * factor[j][k] / factor[j][j]
        found.append(integers)
    return np.array(found, np.int16)


TIE = -0.5499999821186066  # less the minimum -0.7, this is half of the scale 0.3 as float32 has the two


def cases(random):
    """Two weights, four in two groups, ties, levels at both ends, groups of one, then random matrices with channels that move together."""

    def drawn(out, width, groups):
        w = random.normal(0, 1, (out, width))
        x = random.normal(0, 1, (30, width)) + random.normal(0, 2, (30, 1))
        h = x.T @ x / 30 + 0.01 * np.eye(width)
        u = np.linalg.inv(np.linalg.cholesky(h[::-1, ::-1])[::-1, ::-1])
        parts = w.reshape(out, groups, -1)
        low, high = parts.min(axis=2), parts.max(axis=2)
        return w, ((high - low) / 15 * 2).astype(np.float32), low.astype(np.float32), u

    one, zero = np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32)
    pair = np.array([[1.0, -0.5], [0.0, 1.0]])
    two = np.array([[1.0, 2.0]], np.float32), np.array([[0.0, -4.0]], np.float32)
    hand = np.eye(4) - 0.75 * np.eye(4, k=1)
    return [
        (np.array([[0.4, 0.4]]), one, zero, pair),
        (np.array([[2.4, 7.4], [15.8, 20.0]]), np.ones((2, 1), np.float32), np.zeros((2, 1), np.float32), pair),
        (np.array([[0.4, 1.3, 0.6, 5.5]]), *two, hand),
        (np.array([[0.5, 2.0], [TIE, 0.0], [1.5 * float(np.float32(0.49)), 1.0]]), np.float32([[1], [0.3], [0.49]]), np.float32([[0], [-0.7], [0]]), pair),
        (np.array([[-3.0, 2.0], [19.0, 4.0], [1e30, 0.0]]), np.ones((3, 1), np.float32), np.zeros((3, 1), np.float32), pair),
        (np.array([[1.0, 6.3, -2.0]]), np.array([[0.5, 2.0, 1.0]], np.float32), np.float32([[-1, 3, -4]]), hand[:3, :3]),
        drawn(3, 6, 2),
        drawn(4, 8, 2),
        drawn(6, 12, 3),
        drawn(1, 64, 2),
    ]


EXERCISE = Exercise(
    goal="Round a whole matrix column by column, each as it is after all columns before it have had their effect.",
    reference=gptq_matrix, oracle=oracle, cases=cases, minutes=14, difficulty="stretch",
    hints=(
        "Keep two things: the integers that are chosen, and the matrix as it is now. Each turn chooses the integers of one column of that matrix and changes all columns after it.",
        "`gptq_column` gives the next matrix; it wants the new values of the column, not the integers. Column j belongs to group j // size. `np.rint` rounds and the method `clip` keeps 0 to 15.",
    ),
    why="these are the integers of a Q4_1 file, and nothing in the file says how they were chosen.",
    mistakes=(
        Mistake("rounded to nearest", omit("left = gptq_column"),
            cause="Every integer is the one nearest to the weight as it was at the beginning.",
            cure="Let the columns after each one make up for its change.", see="the first column right, a few integers after it off by one"),
        Mistake("integers in place of weights", edit("q[:, j] * s + m, u", "q[:, j], u"),
            cause="The later columns made up for a change to the integer itself, not to the weight that it stands for.",
            cure="Give `gptq_column` the level: q × scale + minimum.", see="right where the scale is 1 and the minimum is 0"),
        Mistake("levels without the minimum", edit("q[:, j] * s + m, u", "q[:, j] * s, u"),
            cause="The later columns made up for a change to q × scale; the level is higher or lower by the minimum.",
            cure="Add the minimum.", see="right where the minimum is 0"),
        Mistake("the first group's scale for all", edit("scale[:, j // size], minimum[:, j // size]", "scale[:, 0], minimum[:, 0]"),
            cause="All columns went to the levels of the first group.",
            cure="Column j belongs to group j // size.", see="right where there is one group"),
        Mistake("groups of every n-th column", edit("scale[:, j // size], minimum[:, j // size]", "scale[:, j % scale.shape[1]], minimum[:, j % scale.shape[1]]"),
            cause="Neighbouring columns went to the levels of different groups. A group is a number of neighbours.",
            cure="Column j belongs to group j // size.", see="right where there is one group"),
        Mistake("integers beyond 0 and 15", edit(".clip(0, 15)", ""),
            cause="Some integers do not fit into four bits.",
            cure="Clip the integers to 0 … 15.", see="integers below 0 or above 15"),
        Mistake("rounded down", edit("np.rint(", "np.floor("),
            cause="Each column went to the levels below it, not to the nearest.",
            cure="Round to the nearest integer.", see="many integers one too small"),
        Mistake("the minimum not taken off", edit("(left[:, j] - m) / s", "left[:, j] / s"),
            cause="The weights were divided by the scale with the minimum still in them.",
            cure="Take off the minimum before you divide.", see="right where the minimum is 0"),
        Mistake("made up for the column before it alone", edit("gptq_column(left, j,", "gptq_column(w, j,"),
            cause="Each column was rounded as the one column before it left it; the effects of the earlier ones are lost.",
            cure="Change the matrix as it is now, not as it was at the beginning.", see="the first two columns right, later ones not always"),
    ),
)
