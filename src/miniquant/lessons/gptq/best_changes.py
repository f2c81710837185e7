"""All other weights make up for the first."""

from fractions import Fraction

import numpy as np

from ...lab import Exercise, Mistake, edit


def best_changes(h, first):
    """How all other weights should change once the change of the first is
    fixed.

    h: (n, n) float64, symmetric and positive definite, n at least 2; first:
        float, the change of the first weight
    ->   (n - 1,) float64: the changes of the other weights, in their order,
         for which d @ h @ d is smallest, right to 1e-7; d is first,
         followed by these changes
    """
    return np.linalg.solve(h[1:, 1:], -first * h[1:, 0])


def oracle(h, first):
    """Gaussian elimination in exact fractions."""
    rows = [[Fraction(x) for x in row] for row in h.tolist()]
    n = len(rows) - 1
    table = [[*row[1:], -Fraction(first) * row[0]] for row in rows[1:]]
    for i in range(n):
        pivot = table[i][i]
        table[i] = [x / pivot for x in table[i]]
        for k in range(n):
            if k != i:
                table[k] = [x - table[k][i] * y for x, y in zip(table[k], table[i])]
    return np.array([float(row[-1]) for row in table])


def cases(random):
    """Two weights, three by hand, random Hessians, no change, then two weights that hardly differ."""
    made = [
        ([[2.0, 1.0], [1.0, 4.0]], 2.0),
        ([[4.0, 2.0, 1.0], [2.0, 2.0, 0.0], [1.0, 0.0, 2.0]], 1.0),
        ([[3.0, 1.0, 1.0], [1.0, 3.0, 1.0], [1.0, 1.0, 3.0]], -2.0),
    ]
    for n in (3, 4, 6):
        x = random.normal(0, 1, (20, n)) + random.normal(0, 1, (20, 1))
        made.append(((x.T @ x / 20).tolist(), float(random.normal())))
    made += [(made[2][0], 0.0), ([[2.0, 0.06, 0.05], [0.06, 1.0, 0.999], [0.05, 0.999, 1.0]], 1.0)]  # two that hardly differ
    return [(np.array(h), first) for h, first in made]


EXERCISE = Exercise(
    goal="Let all other weights make up for the change of the first, together.",
    reference=best_changes, oracle=oracle, cases=cases, minutes=7, difficulty="core", tolerance=1e-7,
    hints=(
        "Strike row 0 and column 0 out of h: what is left says how the other weights work together. Column 0 says how each of them works together with the first.",
        "`h[1:, 1:]` is the matrix without its first row and column. `np.linalg.solve` wants that matrix and the right-hand side.",
    ),
    why="these changes are the best that can be done, and GPTQ makes them after every column.",
    mistakes=(
        Mistake("the same direction", edit("-first * h[1:, 0]", "first * h[1:, 0]"),
            cause="Every weight moves by the right amount the wrong way.",
            cure="Bring the part with `first` to the other side of the equation: it gets a minus.", see="all signs wrong"),
        Mistake("each weight by itself", edit("np.linalg.solve(h[1:, 1:], -first * h[1:, 0])", "-first * h[1:, 0] / np.diag(h)[1:]"),
            cause="Each weight makes up for the whole error as if the others did nothing, so together they do too much or too little.",
            cure="Solve the equations for all of them at once.", see="right for two weights, wrong for more"),
        Mistake("right for a change of 1", edit("-first * h[1:, 0]", "-h[1:, 0]"),
            cause="The changes do not depend on how far the first weight moved.",
            cure="Multiply column 0 by `first`.", see="right where first is 1"),
        Mistake("row 0 of the inverse", edit("np.linalg.solve(h[1:, 1:], -first * h[1:, 0])", "np.linalg.inv(h)[1:, 0] * first"),
            cause="These are entries of the inverse of h, times `first`. The first weight's own entry of the inverse is missing in them.",
            cure="Solve the equations without row 0 and column 0.", see="all changes off by the same factor"),
        Mistake("multiplied instead of solved", edit("np.linalg.solve(h[1:, 1:], -first * h[1:, 0])", "h[1:, 1:] @ (-first * h[1:, 0])"),
            cause="The matrix was multiplied with the right-hand side; the changes are what it must be multiplied with to give that side.",
            cure="Use `np.linalg.solve`.", see="numbers that are too large or too small by no common factor"),
        Mistake("the change of the first weight, too", edit("np.linalg.solve(h[1:, 1:], -first * h[1:, 0])", "np.concatenate([[first], np.linalg.solve(h[1:, 1:], -first * h[1:, 0])])"),
            cause="The change of the first weight is in the result; only those of the others are asked.",
            cure="Return the others alone.", see="one number too many"),
        Mistake("divided by the first diagonal entry", edit("np.linalg.solve(h[1:, 1:], -first * h[1:, 0])", "-first * h[1:, 0] / h[0, 0]"),
            cause="Column 0 was divided by h00. How the other weights work together is not in it.",
            cure="Solve the equations without row 0 and column 0.", see="right for two weights where both entries of the diagonal are equal"),
    ),
)
