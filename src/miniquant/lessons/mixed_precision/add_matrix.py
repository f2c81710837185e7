"""One step of the dynamic programming: one more matrix, for every number of bytes at once."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit


def add_matrix(sums, sizes, kls):
    """The smallest sums with one more matrix, for every room at once.

    sums: (room + 1,) float64; sums[n] is the smallest sum of the KLs of the
        matrices so far if they may take n units of bytes; inf where they
        do not fit
    sizes: the units that the new matrix takes in each type, a list of ints,
        all above 0; kls: its KL in each type, a list of floats
    ->   new_sums: (room + 1,) float64, the same with the new matrix, each
         right to 1e-9; picks: (room + 1,) int64, the place of its type in
         the lists; of types that are equally good, the first; 0 where no
         type fits
    """
    rows = np.full((len(sizes), len(sums)), np.inf)
    for row, size, kl in zip(rows, sizes, kls):
        if size < len(sums):
            row[size:] = sums[: len(sums) - size] + kl
    return rows.min(axis=0), rows.argmin(axis=0).astype(np.int64)


def oracle(sums, sizes, kls):
    """For each room, each type in turn."""
    before, best, picks = sums.tolist(), [], []
    for room in range(len(before)):
        smallest, place = math.inf, 0
        for number, (size, kl) in enumerate(zip(sizes, kls)):
            left = room - size
            if left >= 0 and before[left] + kl < smallest:
                smallest, place = before[left] + kl, number
        best.append(smallest)
        picks.append(place)
    return np.array(best), np.array(picks, np.int64)


def cases(random):
    """The first matrix, a second one, equally good types, nearly as good ones, none that fits, a large one, drawn ones."""
    zero, inf = [0.0] * 6, math.inf
    made = [
        (zero, [2], [0.5]),
        (zero, [2, 4], [0.5, 0.125]),
        ([inf, inf, 0.5, 0.0, 0.0, 0.0, 0.0], [1, 3], [4.0, 1.0]),
        ([inf, 3.0, 2.0, 1.5], [1, 2], [1.5, 0.5]),
        (zero, [1, 1], [0.5 + 2**-40, 0.5]),
        ([0.0, 0.0, 0.0], [5, 7], [1.0, 0.5]),
        (zero, [8, 2], [0.25, 1e10]),
        ([0.0, 0.0, 0.0], [3, 1], [0.25, 1.0]),
        ([inf, inf, inf], [1], [1.0]),
        (zero, [2, 3, 1], [0.25, 0.25, 0.25]),
        ([0.0] * 4, [3, 2], [0.25, 1.0]),  # the first type takes the whole room
        ([8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625], [3, 2, 1], [0.0, 0.5, 2.0]),
    ]
    for _ in range(4):
        sums = np.sort(random.random(20))[::-1].copy()
        sums[: int(random.integers(0, 6))] = inf
        sizes = random.permutation(np.arange(1, 9))[:4]
        made.append((sums, sizes.tolist(), random.random(4).tolist()))
    return [(np.array(sums, float), list(sizes), list(kls)) for sums, sizes, kls in made]


EXERCISE = Exercise(
    goal="For every room at once: the smallest sum of KLs with one more matrix, and which type gives it.",
    reference=add_matrix, oracle=oracle, cases=cases, minutes=10, difficulty="core", tolerance=1e-9,
    hints=(
        "Fix one type. If the new matrix takes `size` units, the others have `size` units less: so the sum for a room n is the old sum for n - size, plus the KL. That is the old array, moved to the right. Do it for each type, and take the smallest for each room.",
        "Begin with an array of `np.inf`, a row for each type, so that rooms without a value count as too small. `min(axis=0)` and `argmin(axis=0)` compare the rows.",
    ),
    why="so many rooms, so many types: a few thousand additions in place of billions of choices.",
    mistakes=(
        Mistake("moved to the left", edit("row[size:] = sums[: len(sums) - size] + kl", "row[: len(sums) - size] = sums[size:] + kl"),
            cause="The sums were moved to smaller rooms: the matrix gives back bytes in place of taking them.",
            cure="The sum for a room n comes from the old sum for n - size.", see="inf at the end, where the largest room is"),
        Mistake("not moved", edit("row[size:] = sums[: len(sums) - size] + kl", "row[size:] = sums[size:] + kl"),
            cause="The others kept the whole room: the bytes of the new matrix were not taken from them.",
            cure="Use the old sum for the room that is left, n - size.", see="right for the first matrix, where all sums are 0"),
        Mistake("one unit too many", edit("row[size:] = sums[: len(sums) - size] + kl", "row[size + 1 :] = sums[: len(sums) - size - 1] + kl"),
            cause="A room that the matrix fills to the last unit counts as too small.",
            cure="Begin at `size`.", see="every sum one place too late"),
        Mistake("one unit too few", edit("row[size:] = sums[: len(sums) - size] + kl", "row[size - 1 :] = sums[: len(sums) - size + 1] + kl").edit("if size < len(sums)", "if size <= len(sums)"),
            cause="The matrix fits into rooms that are one unit too small.",
            cure="Begin at `size`.", see="every sum one place too early"),
        Mistake("the new matrix alone", edit("sums[: len(sums) - size] + kl", "kl"),
            cause="The sums of the matrices before are lost.",
            cure="Add the KL to the old sums.", see="right for the first matrix, and too small for the others"),
        Mistake("the KL forgotten", edit("sums[: len(sums) - size] + kl", "sums[: len(sums) - size]"),
            cause="The old sums were moved, and the KL of the new matrix was not added.",
            cure="Add the KL of the type.", see="0 where a KL is expected"),
        Mistake("the largest sum", edit("rows.min(axis=0), rows.argmin(axis=0)", "np.where(np.isinf(rows), -1, rows).max(axis=0), np.where(np.isinf(rows), -1, rows).argmax(axis=0)"),
            cause="Of several types the one with the largest sum was taken.",
            cure="Take the smallest.", see="-1 where nothing fits, and too large sums elsewhere"),
        Mistake("0 where nothing fits", edit("np.full((len(sizes), len(sums)), np.inf)", "np.zeros((len(sizes), len(sums)))"),
            cause="Where a type does not fit, its row has 0, and 0 is smaller than every sum.",
            cure="Begin with `np.inf`.", see="0 for small rooms"),
        Mistake("the last of equal sums", edit("rows.argmin(axis=0)", "len(sizes) - 1 - rows[::-1].argmin(axis=0)"),
            cause="Of types that are equally good the last was taken.",
            cure="`argmin` takes the first by itself.", see="right sums, other picks where two types are equally good or none fits"),
        Mistake("units instead of places", edit("rows.argmin(axis=0)", "np.array(sizes)[rows.argmin(axis=0)]"),
            cause="The second result has the units of the type, and its place in the list is asked for.",
            cure="Return what `argmin` gives.", see="right sums, and units in place of places"),
        Mistake("picks first", edit("return rows.min(axis=0), rows.argmin(axis=0)", "return rows.argmin(axis=0), rows.min(axis=0)"),
            cause="The picks came first.",
            cure="Return the sums first.", see="two arrays of unexpected dtypes"),
        Mistake("one type for all rooms", edit("return rows.min(axis=0), rows.argmin(axis=0)", "best = int(rows[:, -1].argmin())\n    return rows[best], np.full(len(sums), best)"),
            cause="The type that is best for the largest room was taken for all rooms.",
            cure="Compare the types for each room, `axis=0`.", see="the last sum right, and inf for small rooms"),
        Mistake("the smallest KL", edit("rows.argmin(axis=0)", "np.full(len(sums), int(np.argmin(kls)))"),
            cause="The picks are always the type with the smallest KL, also where it does not fit.",
            cure="Take the place of the smallest sum of each room.", see="right sums, and the same pick everywhere"),
    ),
)
