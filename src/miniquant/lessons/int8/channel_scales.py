"""One scale for every row."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import stored_scale
from .round_scale import round_scale


def channel_scales(w):
    """A scale for every row.

    w: (out, in) float32   ->   (out,) float32, already rounded to float16
    """
    absmax = np.abs(w).max(axis=1)  # (out,)
    return round_scale(absmax / np.float32(127))


def oracle(w):
    """Row by row, with Python's own numbers."""
    return np.array([stored_scale(row, 127) for row in w.tolist()], np.float32)


def cases(random):
    """The farthest weight positive, negative or absent; scales that float16 changes; more columns than rows; random rows."""
    made = [
        [[127.0, -127.0], [254.0, 0.0]],
        [[1.0, -127.0], [-254.0, 2.0]],
        [[127.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
        [[1.0, 0.3, 0.2], [0.1, 0.7, 0.6]],
        np.arange(12).reshape(3, 4) - 6,
        random.normal(0, 0.02, (5, 16)),
    ]
    return [(np.array(w, np.float32),) for w in made]


EXERCISE = Exercise(
    goal="Give every row of a matrix a scale of its own, rounded as the file will hold it.",
    reference=channel_scales, oracle=oracle, cases=cases, minutes=10, difficulty="core",
    hints=(
        "A row is an output channel: the weights that one output is computed from. The maximum runs along the row.",
        "`np.abs(w).max(axis=1)` has the shape `(out,)`; divide it by 127 and pass it through `round_scale`.",
    ),
    why="one long row no longer costs all the others their precision, and two more bytes a row pay for it.",
    mistakes=(
        Mistake("a scale per column", edit("axis=1", "axis=0"),
            cause="`axis=0` runs down the rows and leaves one maximum for each column.",
            cure="A row is an output channel: use `axis=1`.", see="as many scales as the matrix has columns"),
        Mistake("one scale for all rows", edit("np.abs(w).max(axis=1)", "np.full(len(w), np.abs(w).max())"),
            cause="Every row got the scale of the whole matrix.",
            cure="Take the maximum along each row with `axis=1`.", see="the same number in every place"),
        Mistake("signed maximum", edit("np.abs(w)", "w"),
            cause="You took the largest weight of the row, and a negative one that lies farther from zero was not seen.",
            cure="Take `np.abs(w)` before the maximum.",
            see="a scale too small for rows whose longest weight is negative"),
        Mistake("divided by 128", edit("127", "128"),
            cause="The symmetric range ends at 127 on both sides; 128 does not fit in an int8.",
            cure="Divide by 127.", see="0.992 where 1.0 is expected"),
        Mistake("scale never rounded", edit("round_scale(absmax / np.float32(127))", "absmax / np.float32(127)"),
            cause="The scales still have float32's digits, and the file has room for float16's.",
            cure="Pass them through `round_scale`.", see="scales that differ in the fourth significant digit"),
        Mistake("left in float16",
            edit("round_scale(absmax / np.float32(127))", "(absmax / np.float32(127)).astype(np.float16)"),
            cause="The scales were rounded to float16 and not converted back, so what is computed from them is rounded too.",
            cure="Add `.astype(np.float32)`, or call `round_scale`.",
            see="the dtype float16 where float32 is expected"),
        Mistake("kept as a column", edit("axis=1", "axis=1, keepdims=True"),
            cause="`keepdims=True` leaves the shape (out, 1), and the file stores (out,).",
            cure="Leave `keepdims` out here, and add the axis where you divide.",
            see="the shape (2, 1) where (2,) is expected"),
    ),
)
