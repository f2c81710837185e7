"""One column rounded, the others moved."""

import numpy as np

from ...lab import Exercise, Mistake, edit, omit


def gptq_column(w, j, rounded, u):
    """Round one column, and let the columns after it make up for its
    change.

    w: (out, in) float64; j: which column; rounded: (out,) float64, its new
        values
    u: (in, in) float64, the upper triangular factor of the inverse Hessian,
        its diagonal above 0
    ->   a new (out, in) float64: column j has its new values, the columns
         before it are as they were, and with these fixed the columns after
         it have made the best changes in every row, right to 1e-9
    """
    out = w.copy()
    out[:, j] = rounded
    change = rounded - w[:, j]  # (out,)
    out[:, j + 1 :] += np.outer(change, u[j, j + 1 :] / u[j, j])
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
    """Each column of a small matrix, random ones, levels between integers, one row."""
    hand = np.array([[2.0, -1.0, 0.5], [0.0, 4.0, 2.0], [0.0, 0.0, 1.0]])
    w = np.array([[0.4, 0.4, 0.4], [1.2, -0.5, 2.0]])
    cases = [(w, 0, np.rint(w[:, 0]), hand), (w, 1, np.rint(w[:, 1]), hand), (w, 2, np.rint(w[:, 2]), hand)]
    for size, j in ((4, 0), (6, 2), (40, 4)):
        u = np.triu(random.normal(0, 1, (size, size)), 1) + np.diag(random.uniform(0.5, 3, size))
        v = random.normal(0, 2, (3, size))
        cases.append((v, j, np.rint(v[:, j]), u))
    cases.append((w, 0, np.array([0.3, 1.7]), hand))  # levels that are no integers
    cases.append((w[1:], 1, np.array([-0.5]), hand))  # nothing changes, and the array is new
    return cases


EXERCISE = Exercise(
    goal="Put the rounded column in its place, and move the columns after it so that they make up for the error.",
    reference=gptq_column, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-9,
    hints=(
        "The change of the column is one number for each row: what it becomes less what it was. Row j of u says how far each later column moves for it.",
        "`np.outer` makes the table of all products of two arrays: one row for each row of w, one column for each later column. A slice that begins at j + 1 is the part of row j after the diagonal.",
    ),
    why="that one line is GPTQ; everything else is bookkeeping.",
    mistakes=(
        Mistake("the columns after it as they were", omit("out[:, j + 1 :]"),
            cause="No later column moved. That is rounding to nearest.",
            cure="Take the change from the column as it was, and use the part of row j after the diagonal: below the diagonal u is 0.",
            see="column j right, the columns after it unchanged"),
        Mistake("the other direction", edit("+= np.outer", "-= np.outer"),
            cause="The later columns moved by the right amounts the wrong way, which adds to the error.",
            cure="Mind the sign of the change: what the column becomes less what it was.", see="column j right, the columns after it moved the other way"),
        Mistake("column j moved as well", edit(
                "np.outer(change, u[j, j + 1 :] / u[j, j])", "np.outer(change, u[j, j + 1 :] / u[j, j])\n    out[:, j] += change",
            ),
            cause="Column j moved once more after it had its new values.",
            cure="Begin with the column after j.", see="the columns after it right, column j off by its own change"),
        Mistake("not divided by the diagonal", edit(" / u[j, j]", ""),
            cause="The later columns moved by change × u[j, k], as if u[j, j] were 1.",
            cure="Divide by the diagonal entry of row j.", see="the moves too large or too small by a factor, u[j, j]"),
        Mistake("divided by the diagonal twice", edit("/ u[j, j]", "/ u[j, j] ** 2"),
            cause="The moves are too small or too large by a factor of u[j, j].",
            cure="Divide by the diagonal entry of row j once.", see="the moves off by a factor, 1 / u[j, j]"),
        Mistake("only the next column", edit(
                "out[:, j + 1 :] += np.outer(change, u[j, j + 1 :] / u[j, j])",
                "out[:, j + 1 : j + 2] += np.outer(change, u[j, j + 1 : j + 2] / u[j, j])",
            ),
            cause="One column alone moved, and those after it stayed.",
            cure="Move all columns from j + 1 to the end.", see="the next column right, those after it unchanged"),
        Mistake("column j as it was", omit("out[:, j] = rounded"),
            cause="The others made up for a change that column j then does not make.",
            cure="Give column j its new values.", see="the columns after it right, column j unchanged"),
        Mistake("each column's own diagonal", edit("/ u[j, j]", "/ np.diag(u)[j + 1 :]"),
            cause="The move of column k was divided by u[k, k].",
            cure="Divide by u[j, j], the diagonal entry of the column that was rounded.",
            see="right where the diagonal of u has equal entries"),
        Mistake("the mean change in all rows", edit("np.outer(change,", "np.outer(np.full(len(w), change.mean()),"),
            cause="All rows moved by the same, for the mean change of the column; every row of w is a problem of its own.",
            cure="Keep one change for each row.", see="every row moved by the same"),
    ),
)
