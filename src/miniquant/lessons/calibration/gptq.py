"""The exercises of lab 14 on GPTQ: the damped Hessian, and what rounding one column does to the others."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ...calibrate.gptq import damped
from ...lab.spec import Case, Exercise, Mistake

# ---- damped_hessian --------------------------------------------------------------------------------------------------


def damped_hessian(x: np.ndarray, damping: float) -> np.ndarray:
    """The reference: x (tokens, in) float64, no column of zeros -> (in, in) float64."""
    return damped(x.T @ x / len(x), damping)


def _hessian_oracle(x: np.ndarray, damping: float) -> np.ndarray:
    """Sums written out, entry by entry."""
    rows = x.tolist()
    width = len(rows[0])
    h = [[math.fsum(row[a] * row[b] for row in rows) / len(rows) for b in range(width)] for a in range(width)]
    extra = damping * math.fsum(h[a][a] for a in range(width)) / width
    return np.array([[h[a][b] + (extra if a == b else 0.0) for b in range(width)] for a in range(width)])


def _hessian_cases(random: np.random.Generator) -> list[Case]:
    return [
        (np.array([[1.0, 2.0], [3.0, 4.0]]), 0.5),
        (np.array([[2.0, 0.0, 1.0], [0.0, 2.0, 1.0]]), 0.25),
        (np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [0.0, 0.0]]), 0.01),  # two columns that are always equal
        (random.normal(0, [1, 4, 0.5, 2], (20, 4)), 0.1),
    ]


def _h(x: np.ndarray, damping: float, over=len, extra=lambda d: d.mean(), where=np.eye) -> np.ndarray:
    h = x.T @ x / over(x)
    return h + damping * extra(np.diag(h)) * where(len(h))


DAMPED_HESSIAN = Exercise(
    name="damped_hessian",
    lab="14",
    goal="Sum up the calibration text in one matrix, XᵀX / n, and add a part of its mean diagonal to the diagonal.",
    minutes=5,
    difficulty="core",
    reference=damped_hessian,
    oracle=_hessian_oracle,
    cases=_hessian_cases,
    tolerance=1e-6,
    hints=(
        "x has a row for each token, so `x.T @ x` has a row and a column for each input channel; n is `len(x)`.",
        "`h = x.T @ x / len(x)`, then `h + damping * np.diag(h).mean() * np.eye(len(h))`.",
    ),
    why="everything that GPTQ knows of the text is in here; damping keeps it invertible and the corrections modest.",
    mistakes=(
        Mistake(
            "not damped",
            partial(_h, extra=lambda d: 0.0),
            "Two channels that always move together make the matrix singular, and it cannot be inverted.",
            "Add damping × the mean of the diagonal to the diagonal.",
            "a diagonal that is too small",
        ),
        Mistake(
            "damping as it stands",
            partial(_h, extra=lambda d: 1.0),
            "0.01 is a lot for a layer with small activations and nothing for one with large ones.",
            "Multiply it by the mean of the diagonal.",
            "the diagonal wrong, everything else right",
        ),
        Mistake(
            "damping everywhere",
            partial(_h, where=lambda n: np.ones((n, n))),
            "Every entry got larger, which ties all columns together and leaves a singular matrix singular.",
            "Add to the diagonal alone: `np.eye`.",
            "entries beside the diagonal too large",
        ),
        Mistake(
            "tokens by tokens",
            lambda x, damping: _h(x.T, damping),
            "`x @ x.T` compares tokens with each other; GPTQ needs to know which channels move together.",
            "Write `x.T @ x`.",
            "another shape, with a row for each token",
        ),
        Mistake(
            "a sum instead of a mean",
            partial(_h, over=lambda x: 1),
            "The matrix grows with the amount of text.",
            "Divide by the number of tokens.",
            "every entry too large by the same factor",
        ),
        Mistake(
            "divided by the channels",
            partial(_h, over=lambda x: x.shape[1]),
            "`x.shape[1]` is the number of channels.",
            "Divide by the number of tokens, `len(x)`.",
            "every entry wrong by the same factor",
        ),
        Mistake(
            "damped by the trace",
            partial(_h, extra=lambda d: d.sum()),
            "The sum of the diagonal is larger than its mean by the number of channels.",
            "Use the mean.",
            "a diagonal that is too large",
        ),
    ),
)

# ---- gptq_column -----------------------------------------------------------------------------------------------------


def gptq_column(w: np.ndarray, j: int, rounded: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The reference: w (out, in), what column j becomes (out,), u (in, in) upper triangular -> w, changed."""
    out = w.copy()
    out[:, j + 1 :] -= np.outer((w[:, j] - rounded) / u[j, j], u[j, j + 1 :])
    out[:, j] = rounded
    return out


def _column_oracle(w: np.ndarray, j: int, rounded: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Weight by weight."""
    rows, factor = w.tolist(), u.tolist()
    for row, value in zip(rows, rounded.tolist()):
        lost = row[j] - value
        for k in range(j + 1, len(row)):
            row[k] = row[k] - lost * factor[j][k] / factor[j][j]
        row[j] = value
    return np.array(rows)


def _column_cases(random: np.random.Generator) -> list[Case]:
    hand = np.array([[2.0, -1.0, 0.5], [0.0, 4.0, 2.0], [0.0, 0.0, 1.0]])
    w = np.array([[0.4, 0.4, 0.4], [1.2, -0.5, 2.0]])
    cases = [(w, 0, np.rint(w[:, 0]), hand), (w, 1, np.rint(w[:, 1]), hand), (w, 2, np.rint(w[:, 2]), hand)]
    for size, j in ((4, 0), (6, 2), (6, 4)):
        u = np.triu(random.normal(0, 1, (size, size)), 1) + np.diag(random.uniform(0.5, 3, size))
        v = random.normal(0, 2, (3, size))
        cases.append((v, j, np.rint(v[:, j]), u))
    return cases


def _column(w, j, rounded, u, sign=-1, over=lambda u, j: u[j, j], last=None, keep=True) -> np.ndarray:
    out = w.copy()
    out[:, j + 1 : last and j + last] += sign * np.outer(
        (w[:, j] - rounded) / over(u, j), u[j, j + 1 : last and j + last]
    )
    if keep:
        out[:, j] = rounded
    return out


def _from_j_on(w, j, rounded, u) -> np.ndarray:
    out = w.copy()
    out[:, j] = rounded
    out[:, j:] -= np.outer((w[:, j] - rounded) / u[j, j], u[j, j:])
    return out


def _own_diagonal(w, j, rounded, u) -> np.ndarray:
    out = w.copy()
    out[:, j + 1 :] -= np.outer(w[:, j] - rounded, u[j, j + 1 :] / np.diag(u)[j + 1 :])
    out[:, j] = rounded
    return out


def _the_mean_error(w, j, rounded, u) -> np.ndarray:
    out = w.copy()
    out[:, j + 1 :] -= (w[:, j] - rounded).mean() / u[j, j] * u[j, j + 1 :]
    out[:, j] = rounded
    return out


GPTQ_COLUMN = Exercise(
    name="gptq_column",
    lab="14",
    goal="Put the rounded column in its place, and move the columns behind it so that they make up for the error.",
    minutes=8,
    difficulty="core",
    reference=gptq_column,
    oracle=_column_oracle,
    cases=_column_cases,
    tolerance=1e-9,
    hints=(
        "The error of the column is `w[:, j] - rounded`, one number a row. Divide it by `u[j, j]`.",
        "Column k behind j moves by minus that times `u[j, k]`. All of them at once: "
        "`out[:, j + 1 :] -= np.outer(error, u[j, j + 1 :])`.",
    ),
    why="that one line is GPTQ; everything else is bookkeeping.",
    mistakes=(
        Mistake(
            "the error not propagated",
            partial(_column, sign=0),
            "The columns behind did not move, because nothing was subtracted from them, or zeros were: that is "
            "rounding to nearest.",
            "Take the error before you store the rounded column, and use the row `u[j, j + 1 :]`: below the "
            "diagonal u is 0.",
            "column j right, the columns behind it unchanged",
        ),
        Mistake(
            "the wrong sign",
            partial(_column, sign=1),
            "The columns behind lean the same way as the error, and double it.",
            "Subtract.",
            "the columns behind moved by as much, the other way",
        ),
        Mistake(
            "column j moved as well",
            _from_j_on,
            "The slice begins at j, so the column that had just been stored moved away from its grid again.",
            "Begin at j + 1.",
            "the columns behind right, and column j off by its own error",
        ),
        Mistake(
            "not divided by the diagonal",
            partial(_column, over=lambda u, j: 1.0),
            "The row of u is a direction; how far to go along it, error / u[j, j] says.",
            "Divide the error by `u[j, j]`.",
            "the columns behind moved too far or not far enough",
        ),
        Mistake(
            "divided by the diagonal twice",
            partial(_column, over=lambda u, j: u[j, j] ** 2),
            "The inverse Hessian has u[j, j]² on its diagonal at first; the row of u needs u[j, j] once.",
            "Divide by `u[j, j]`.",
            "the columns behind moved too far or not far enough",
        ),
        Mistake(
            "only the next column",
            partial(_column, last=2),
            "One neighbour alone had to make up for everything.",
            "Move all columns from j + 1 to the end.",
            "the next column right, those behind it unchanged",
        ),
        Mistake(
            "column j never stored",
            partial(_column, keep=False),
            "The others made up for an error that column j then does not make.",
            "Write `out[:, j] = rounded`.",
            "column j unchanged",
        ),
        Mistake(
            "the error of each column's own diagonal",
            _own_diagonal,
            "Every column was divided by its own diagonal, `u[k, k]`.",
            "Divide by `u[j, j]`, the diagonal of the column that was rounded.",
            "the columns behind moved by other amounts",
        ),
        Mistake(
            "one error for all rows",
            _the_mean_error,
            "The rows' errors were averaged; every row of w is a problem of its own.",
            "Keep one error a row, and use `np.outer`.",
            "every row moved by the same",
        ),
    ),
)
