"""The Hadamard transform by sums and differences."""

import functools
import math
from operator import mul

import numpy as np

from ...lab import Exercise, Mistake, edit


def fast_hadamard(x):
    """Each row times the Hadamard matrix, divided by sqrt(n).

    x: (rows, n) float64, n a power of two, 1 included
    ->   (rows, n) float64, each number right to 1e-9
    """
    n, half, y = x.shape[1], 1, x
    while half < n:
        pairs = y.reshape(len(x), -1, 2, half)
        a, b = pairs[:, :, 0], pairs[:, :, 1]
        y = np.stack([a + b, a - b], axis=2).reshape(x.shape)
        half = 2 * half
    return y / np.sqrt(n)


def oracle(x):
    """By the definition: the sign at (i, j) is that of the number of bits that i and j have in common."""
    n = x.shape[1]
    found = []
    for row in x.tolist():
        sums = (math.fsum(map(mul, row, column)) for column in _signs(n))
        found.append([s / n**0.5 for s in sums])
    return np.array(found).reshape(x.shape)


@functools.lru_cache(maxsize=16)
def _signs(n):
    """The signs of each column: many inputs have as many columns."""
    return [[-1.0 if (i & j).bit_count() % 2 else 1.0 for i in range(n)] for j in range(n)]


def cases(random):
    """Two numbers, four, one alone, equal ones, several rows, as many rows as columns, rows of one, a long row, random rows."""
    made = [
        [[3, 1]],
        [[1, 2, 3, 4]],
        [[8, 0, 0, 0]],
        [[0, 4, 0, 0]],
        [[1, 1, 1, 1], [5, -3, 0, 2]],
        [[1, 2], [3, -4]],
        [[7], [-2], [0]],
        [[0, 0, 16, 0, 0, 0, 0, 0]],
        [[1] * 512],
    ]
    return [*((np.array(x, np.float64),) for x in made), (random.normal(size=(3, 32)),), (random.normal(size=(8, 8)),)]


_STACK = "np.stack([a + b, a - b], axis=2).reshape(x.shape)"

EXERCISE = Exercise(
    goal="Compute the Hadamard transform of each row by sums and differences of halves.",
    reference=fast_hadamard, oracle=oracle, cases=cases, minutes=11, difficulty="core", tolerance=1e-9,
    hints=(
        "Every pass does the same with parts of twice the length: cut each part into two halves, and put their sum first and their difference second. Divide once, at the end.",
        "`y.reshape(rows, -1, 2, half)` gives each part its two halves along axis 2. `np.stack` along that axis puts sum and difference back in their place, and `.reshape(x.shape)` makes rows of them.",
    ),
    why="n · log2(n) additions in place of n² multiplications, and no matrix in memory.",
    mistakes=(
        Mistake("not divided", edit("y / np.sqrt(n)", "y"),
            cause="The sums were not divided, so rows become larger.",
            cure="Divide by `np.sqrt(n)` at the end.", see="right for rows of one number; elsewhere too large by the same factor"),
        Mistake("divided by n", edit("y / np.sqrt(n)", "y / n"),
            cause="You divided by n, in all. Then rows become smaller, and doing it twice does not give x back.",
            cure="Divide by `np.sqrt(n)`.", see="right for rows of one number; elsewhere too small by the same factor"),
        Mistake("the difference reversed", edit("a - b]", "b - a]"),
            cause="The second half is second minus first.",
            cure="Take first minus second, a - b.", see="the first number right, half of the others with the wrong sign"),
        Mistake("difference first", edit("[a + b, a - b]", "[a - b, a + b]"),
            cause="The difference was put first and the sum second.",
            cure="Put the sum first.", see="the right numbers in another order, some with the other sign"),
        Mistake("one pass", edit("half = 2 * half", "half = n"),
            cause="Only neighbours were added and subtracted: one pass.",
            cure="Go on with halves of 2, 4, 8 …, until a part is the whole row.", see="right for rows of one or two numbers"),
        Mistake("the last pass forgotten", edit("while half < n:", "while half < n / 2:"),
            cause="The loop ends before the pass in which the halves are those of the whole row.",
            cure="The last half is n / 2.", see="right for rows of one number, too small elsewhere"),
        Mistake("a pass forgotten at the start", edit("n, half, y = x.shape[1], 1, x", "n, half, y = x.shape[1], 2, x"),
            cause="The first pass, with halves of one number, is missing.",
            cure="Begin with half = 1.", see="right for rows of one number, too small elsewhere"),
        Mistake("half grows by one", edit("half = 2 * half", "half = 2 * half if half != 2 else n"),
            cause="Passes after the second one are missing.",
            cure="Double `half` after every pass.", see="right for rows of up to four numbers"),
        Mistake("the first half overwritten", edit("[a + b, a - b]", "[a + b, (a + b) - b]"),
            cause="The sum took the place of the first half before the difference was made, so the difference is (a + b) - b, which is a.",
            cure="Make both from the old halves.", see="the first number right, the others wrong"),
        Mistake("halves of the whole row in each pass", edit("y.reshape(len(x), -1, 2, half)", "y.reshape(len(x), 1, 2, n // 2)"),
            cause="Every pass added and subtracted the two halves of the whole row.",
            cure="Begin with parts of two numbers, and double their length from pass to pass.", see="right for rows of one or two numbers"),
        Mistake("sums and differences in turn", edit(_STACK, "np.stack([a + b, a - b], axis=-1).reshape(x.shape)"),
            cause="Sum and difference were put in turn, number by number, so the numbers land in other places.",
            cure="Stack along axis 2: all sums of a part, then all its differences.", see="the right numbers in another order from four numbers on"),
        Mistake("all sums first", edit(_STACK, "np.concatenate([(a + b).reshape(len(x), -1), (a - b).reshape(len(x), -1)], axis=1)"),
            cause="The sums of all parts were put first, and the differences of all parts after them.",
            cure="Each part keeps its place: its sums, then its differences.", see="the right numbers in another order from four numbers on"),
        Mistake("halves across rows", edit("y.reshape(len(x), -1, 2, half)", "y.reshape(-1, len(x), 2, half).swapaxes(0, 1)"),
            cause="Parts of several rows were mixed.",
            cure="Keep the rows apart: the first dimension stays `len(x)`.", see="right for one row"),
        Mistake("float32", edit("return y / np.sqrt(n)", "return (y / np.sqrt(n)).astype(np.float32)"),
            cause="The result is float32.",
            cure="Keep float64.", see="the dtype float32"),
    ),
)
