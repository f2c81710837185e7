"""The tensors of an importance matrix, as llama.cpp names them."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest32


def imatrix_tensors(seen):
    """The tensors of llama.cpp's file for an importance matrix.

    seen: dict, name of a matrix -> (sums, count); sums: (in,) float64,
        count: int
    ->   dict with two arrays for each matrix NAME: "NAME.in_sum2", (in,)
         float32, the sums; "NAME.counts", (1,) float32, the count
    """
    tensors = {}
    for name in seen:
        sums, count = seen[name]
        tensors[f"{name}.in_sum2"] = sums.astype(np.float32)
        tensors[f"{name}.counts"] = np.array([count], np.float32)
    return tensors


def oracle(seen):
    """Names joined by hand, each number rounded to float32 by itself."""
    found = {}
    for name, (sums, count) in seen.items():
        for end, numbers in ((".in_sum2", sums.tolist()), (".counts", [count])):
            found[name + end] = np.array([nearest32(x) for x in numbers], np.float32)
    return found


def cases(random):
    """One matrix, one column, a column that met zeros only, three matrices, of which one met no token, then drawn sums."""
    return [
        ({"up": (np.array([8.0, 2.0]), 2)},),
        ({"blk.0.ffn_down.weight": (np.array([5.0]), 3)},),
        ({"a": (np.array([0.1, 0.0, 1e-3]), 4)},),
        ({"a": (np.array([1.0, 2.0, 3.0]), 6), "B": (np.zeros(2), 0), "b": (np.array([0.5, 7.0]), 9)},),
        ({f"blk.{i}.attn_qkv.weight": (random.uniform(0, 900, 4), 40_000 * i + 1007) for i in range(3)},),
    ]


EXERCISE = Exercise(
    goal="Make the tensors of llama.cpp's file from what you counted: two tensors for each matrix.",
    reference=imatrix_tensors, oracle=oracle, cases=cases, minutes=4, difficulty="core",
    hints=(
        "Go through the dict, and put two arrays into a new one for each matrix. The sums stay sums: the reader divides.",
        "An f-string such as `f\"{name}.counts\"` makes a name. `.astype(np.float32)` converts, and `np.array([count], np.float32)` is an array with one number.",
    ),
    why="any program that knows llama.cpp's importance matrices can now read yours.",
    mistakes=(
        Mistake("means instead of sums", edit("sums.astype(np.float32)", "(sums / count).astype(np.float32)"),
            cause="The sums were divided by the count; the reader will divide once more.",
            cure="Store the sums as they are.", see="numbers that are too small by a factor, the count"),
        Mistake("roots of the sums", edit("sums.astype(np.float32)", "np.sqrt(sums).astype(np.float32)"),
            cause="The roots of the sums were stored.",
            cure="Store the sums of squares themselves.", see="the square root of each expected number"),
        Mistake("float64 sums", edit("sums.astype(np.float32)", "sums.copy()"),
            cause="The sums are float64, and the file holds float32.",
            cure="Convert them with `.astype(np.float32)`.", see="the dtype float64"),
        Mistake("the count as a whole number", edit("np.array([count], np.float32)", "np.array([count])"),
            cause="The count is an array of integers; llama.cpp reads float32.",
            cure="Give `np.float32` as the dtype.", see="the dtype int64"),
        Mistake("the count without an axis", edit("np.array([count], np.float32)", "np.array(count, np.float32)"),
            cause="The count is a scalar, an array without an axis.",
            cure="Put it into a list: an array of one number.", see="the shape () where (1,) is expected"),
        Mistake("a count for each column", edit("np.array([count], np.float32)", "np.full(len(sums), count, np.float32)"),
            cause="The count was repeated for each column. It is the same for all columns, so the file has it once.",
            cure="Make an array of one number.", see="as many counts as columns"),
        Mistake("another name", edit(".in_sum2", ".sums"),
            cause="The name of the sums ends with `.sums`, and no reader looks for that.",
            cure="End it with `.in_sum2`.", see="an unexpected key"),
        Mistake("the name of the matrix lost", edit('f"{name}.in_sum2"', '"in_sum2"').edit('f"{name}.counts"', '"counts"'),
            cause="The names do not say which matrix it is, so each one overwrites the one before.",
            cure="Begin each name with that of the matrix.", see="two tensors, however many matrices there are"),
        Mistake("exchanged", edit('f"{name}.in_sum2"', 'f"{name}.in_counts"').edit('f"{name}.counts"', 'f"{name}.in_sum2"').edit('f"{name}.in_counts"', 'f"{name}.counts"'),
            cause="The sums are under the name of the count, and the count under that of the sums.",
            cure="Exchange the two names.", see="shapes exchanged"),
        Mistake("the last matrix alone", edit("        tensors[f\"{name}.in_sum2\"]", "        tensors = {}\n        tensors[f\"{name}.in_sum2\"]"),
            cause="The dict was made anew for each matrix.",
            cure="Make it once, before the loop.", see="right for one matrix"),
    ),
)
