"""Random signs, then a Hadamard transform."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from .fast_hadamard import fast_hadamard


def rotation_matrix(signs):
    """The matrix Q for which x @ Q is the transform of x * signs.

    signs: (n,) float64 of 1 and -1, n a power of two
    ->   (n, n) float64, each number right to 1e-9
    """
    return fast_hadamard(np.diag(signs))


def oracle(signs):
    """Number by number: the sign of the row, and that of the bits that row and column have in common."""
    n = len(signs)
    found = [
        [sign * (-1 if bin(i & j).count("1") % 2 else 1) / n**0.5 for j in range(n)]
        for i, sign in enumerate(signs.tolist())
    ]
    return np.array(found)


def cases(random):
    """One sign, two, four, no minus at all, random signs."""
    made = [[1, -1], [-1], [1, 1, -1, 1], [-1, 1, 1, -1], [1, 1]]
    return [*((np.array(signs, np.float64),) for signs in made), (random.choice([-1.0, 1.0], 16),)]


_ROWS = "fast_hadamard(np.diag(signs))"

EXERCISE = Exercise(
    goal="Make the matrix of a rotation: a sign for each number, then the Hadamard transform.",
    reference=rotation_matrix, oracle=oracle, cases=cases, minutes=5, difficulty="core", tolerance=1e-9,
    hints=(
        "Row i of a matrix is x @ Q for a row x that is 1 at place i and 0 elsewhere. So transform such rows, each with its sign.",
        "`np.diag(signs)` is the matrix with these rows, signs included. `fast_hadamard` takes all rows at once.",
    ),
    why="each number of Q has the size 1 / sqrt(n), so that every number of x goes to all places alike.",
    mistakes=(
        Mistake("signs after the transform", edit(_ROWS, "fast_hadamard(np.eye(len(signs))) * signs"),
            cause="The signs were applied to the columns, after the transform.",
            cure="Apply them to the rows, before the transform.", see="the transpose of the right matrix"),
        Mistake("signs left out", edit(_ROWS, "fast_hadamard(np.eye(len(signs)))"),
            cause="The signs were not used.",
            cure="Give row i the sign i.", see="right where no sign is -1"),
        Mistake("signs on both sides", edit(_ROWS, "fast_hadamard(np.diag(signs)) * signs"),
            cause="The signs were applied before and after the transform.",
            cure="Apply them once, before.", see="right where all signs are 1; else the first row or column right"),
        Mistake("one row", edit(_ROWS, "fast_hadamard(signs[None])"),
            cause="The signs themselves were transformed: that is one row.",
            cure="Transform a matrix with one row for each place.", see="the shape (1, n)"),
        Mistake("the signs alone", edit(_ROWS, "np.diag(signs)"),
            cause="The matrix changes signs and mixes nothing.",
            cure="Transform its rows.", see="zeros outside of the diagonal"),
        Mistake("the same row n times", edit("np.diag(signs)", "np.tile(signs, (len(signs), 1))"),
            cause="Every row is that of all signs.",
            cure="Row i has one number that is not 0, at place i.", see="n equal rows"),
        Mistake("not divided", edit(_ROWS, "fast_hadamard(np.diag(signs)) * np.sqrt(len(signs))"),
            cause="The division by sqrt(n) was undone, so that rows become larger.",
            cure="Leave the transform as it is.", see="numbers of 1 and -1"),
        Mistake("divided again", edit(_ROWS, "fast_hadamard(np.diag(signs)) / np.sqrt(len(signs))"),
            cause="The numbers are divided by sqrt(n) twice, or once by n. `fast_hadamard` divides by sqrt(n) already.",
            cure="Divide by sqrt(n) once, in all.", see="numbers that are too small by the same factor"),
    ),
)
