"""One column rounded, the others moved."""

import numpy as np

from ...lab import Exercise, Mistake, edit, omit


def gptq_column(w, j, rounded, u):
    """Round one column, and let the columns after it make up for the error.

    w: (out, in) float64; j: which column; rounded: (out,) what it becomes; u: (in, in) upper triangular
    ->   a new (out, in): column j is rounded, and each column k after it has moved by -error / u[j, j] × u[j, k], with
    error = what column j was, less what it became; the columns in front stay
    """
    out = w.copy()
    error = (w[:, j] - rounded) / u[j, j]
    out[:, j + 1 :] -= np.outer(error, u[j, j + 1 :])
    out[:, j] = rounded
    return out


def oracle(w, j, rounded, u):
    """Weight by weight."""
    rows, factor = w.tolist(), u.tolist()
    for row, value in zip(rows, rounded.tolist()):
        lost = row[j] - value
        for k in range(j + 1, len(row)):
            row[k] = row[k] - lost * factor[j][k] / factor[j][j]
        row[j] = value
    return np.array(rows)


def cases(random):
    """Each column of a small matrix, then random ones."""
    hand = np.array([[2.0, -1.0, 0.5], [0.0, 4.0, 2.0], [0.0, 0.0, 1.0]])
    w = np.array([[0.4, 0.4, 0.4], [1.2, -0.5, 2.0]])
    cases = [(w, 0, np.rint(w[:, 0]), hand), (w, 1, np.rint(w[:, 1]), hand), (w, 2, np.rint(w[:, 2]), hand)]
    for size, j in ((4, 0), (6, 2), (6, 4)):
        u = np.triu(random.normal(0, 1, (size, size)), 1) + np.diag(random.uniform(0.5, 3, size))
        v = random.normal(0, 2, (3, size))
        cases.append((v, j, np.rint(v[:, j]), u))
    return cases


EXERCISE = Exercise(
    goal="Put the rounded column in its place, and move the columns after it so that they make up for the error.",
    reference=gptq_column, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-9,
    hints=(
        "The error of the column is one number a row: the old column less the rounded one, divided by the diagonal number of u.",
        "Every later column moves by minus that error times its own number in row j of u. `np.outer` makes the table of all products at once.",
    ),
    why="that one line is GPTQ; everything else is bookkeeping.",
    mistakes=(
        Mistake("the error not propagated", omit("out[:, j + 1 :]"),
            cause="The columns after it did not move, because nothing was subtracted from them, or zeros were: that is rounding to nearest.",
            cure="Take the error before you store the rounded column, and use the row `u[j, j + 1 :]`: below the diagonal u is 0.",
            see="column j right, the columns after it unchanged"),
        Mistake("the wrong sign", edit("-= np.outer", "+= np.outer"),
            cause="The columns after it lean the same way as the error, and double it.",
            cure="Subtract.", see="the columns after it moved by as much, the other way"),
        Mistake("column j moved as well", edit(
                "    out[:, j + 1 :] -= np.outer(error, u[j, j + 1 :])\n    out[:, j] = rounded",
                "    out[:, j] = rounded\n    out[:, j:] -= np.outer(error, u[j, j:])",
            ),
            cause="The slice begins at j, so the column that had just been stored moved away from its grid again.",
            cure="Begin at j + 1.", see="the columns after it right, and column j off by its own error"),
        Mistake("not divided by the diagonal", edit(" / u[j, j]", ""),
            cause="The row of u is a direction; how far to go along it, error / u[j, j] says.",
            cure="Divide the error by `u[j, j]`.", see="the columns after it moved too far or not far enough"),
        Mistake("divided by the diagonal twice", edit("/ u[j, j]", "/ u[j, j] ** 2"),
            cause="The inverse Hessian has u[j, j]² on its diagonal at first; the row of u needs u[j, j] once.",
            cure="Divide by `u[j, j]`.", see="the columns after it moved too far or not far enough"),
        Mistake("only the next column", edit(
                "out[:, j + 1 :] -= np.outer(error, u[j, j + 1 :])",
                "out[:, j + 1 : j + 2] -= np.outer(error, u[j, j + 1 : j + 2])",
            ),
            cause="One neighbour alone had to make up for everything.",
            cure="Move all columns from j + 1 to the end.", see="the next column right, those after it unchanged"),
        Mistake("column j never stored", omit("out[:, j] = rounded"),
            cause="The others made up for an error that column j then does not make.",
            cure="Write `out[:, j] = rounded`.", see="column j unchanged"),
        Mistake("the error of each column's own diagonal",
            edit(" / u[j, j]", "").edit("u[j, j + 1 :])", "u[j, j + 1 :] / np.diag(u)[j + 1 :])"),
            cause="Every column was divided by its own diagonal, `u[k, k]`.",
            cure="Divide by `u[j, j]`, the diagonal of the column that was rounded.",
            see="the columns after it moved by other amounts"),
        Mistake("one error for all rows", edit("np.outer(error,", "np.outer(np.full(len(w), error.mean()),"),
            cause="The rows' errors were averaged; every row of w is a problem of its own.",
            cure="Keep one error a row, and use `np.outer`.", see="every row moved by the same"),
    ),
)
