"""The gain of an RMSNorm, moved into the matrices after it."""

import numpy as np

from ...lab import Exercise, Mistake, edit


def fold_gain(gain, matrices):
    """Move the gain of a norm into the matrices that read its output.

    gain: (n,) float64; matrices: list of arrays (out, n) float64, each
        computes x @ w.T
    ->   new_gain: (n,) float64, all 1; new_matrices: list of float64 arrays
         of the same shapes, each number right to 1e-9; the products with
         x / rms(x) * gain stay what they were
    """
    return np.ones(len(gain)), [w * gain for w in matrices]


def oracle(gain, matrices):
    """Column by column."""
    found = []
    for w in matrices:
        folded = np.empty_like(w)
        for column, factor in enumerate(gain.tolist()):
            folded[:, column] = [factor * number for number in w[:, column].tolist()]
        found.append(folded)
    return np.array([1.0 for _ in gain]), found


def cases(random):
    """One matrix, two of other heights, a square one, a gain below 0, a gain of 0, random ones."""
    made = [
        ([2, 3], [[[1, 1]]]),
        ([1, 10, 0.5], [[[1, 2, 4], [3, 0, 2]], [[5, 1, 8]]]),
        ([3, -2], [[[1, 2], [5, 7]]]),
        ([1, 1], [[[4, 6]], [[0, 3]]]),
        ([0, 2], [[[3, 5]]]),
    ]
    found = [(np.array(g, np.float64), [np.array(w, np.float64) for w in ws]) for g, ws in made]
    drawn = [random.normal(size=(out, 5)) for out in (5, 2, 2)]
    return [*found, (random.uniform(0.3, 2, 5), drawn)]


EXERCISE = Exercise(
    goal="Move the gain of an RMSNorm into the matrices after it, so that nothing changes.",
    reference=fold_gain, oracle=oracle, cases=cases, minutes=5, difficulty="core", tolerance=1e-9,
    hints=(
        "The gain multiplies number i of x, and column i of each matrix meets that number. So the factor can be in the column as well.",
        "An array (n,) times an array (out, n) multiplies each column by its number. A list in brackets, `[… for w in matrices]`, does it for each matrix.",
    ),
    why="a norm whose gain is 1 treats all directions alike; that is what a rotation needs.",
    mistakes=(
        Mistake("rows instead of columns", edit("w * gain", "(w.T * np.resize(gain, len(w))).T"),
            cause="The rows were multiplied. A row is an output; the gain belongs to the inputs.",
            cure="Multiply the columns: `w * gain`.", see="the second number of the first row with the factor of the first"),
        Mistake("divided", edit("w * gain", "w / gain"),
            cause="The matrices were divided by the gain.",
            cure="The norm no longer multiplies, so the matrix must.", see="right where the gain is 1 or -1"),
        Mistake("the gain kept", edit("np.ones(len(gain))", "gain.copy()"),
            cause="The norm keeps its gain, so the factor counts twice.",
            cure="Return a gain of ones.", see="the matrices right, the gain as before"),
        Mistake("the gain inverted", edit("np.ones(len(gain))", "1 / gain"),
            cause="The new gain is 1 / gain, which takes the factor out again.",
            cure="Return a gain of ones.", see="the matrices right, another gain"),
        Mistake("a gain of zeros", edit("np.ones(len(gain))", "np.zeros(len(gain))"),
            cause="The new gain is 0, which makes the output of the norm 0.",
            cure="A gain that changes nothing is 1.", see="the matrices right, zeros for the gain"),
        Mistake("the gain squared", edit("w * gain", "w * gain**2"),
            cause="The factor counts twice in the matrices.",
            cure="Multiply by the gain once.", see="right where the gain is 1"),
        Mistake("the size of the gain", edit("w * gain", "w * np.abs(gain)"),
            cause="The sign of the gain was lost.",
            cure="Multiply by the gain as it is.", see="right where no gain is below 0"),
        Mistake("the first matrix alone", edit("[w * gain for w in matrices]", "[w * gain if i == 0 else w for i, w in enumerate(matrices)]"),
            cause="Only the first matrix was changed, and the others lost the gain.",
            cure="Multiply every matrix that reads the norm.", see="the first matrix right, the others as before"),
        Mistake("the mean gain", edit("w * gain", "w * gain.mean()"),
            cause="Every column was multiplied by the mean of the gains.",
            cure="Each column has its own factor.", see="right where all gains are equal"),
        Mistake("matrices first", edit("np.ones(len(gain)), [w * gain for w in matrices]", "[w * gain for w in matrices], np.ones(len(gain))"),
            cause="The matrices came first.",
            cure="Return the gain first.", see="a list where an array is expected"),
    ),
)
