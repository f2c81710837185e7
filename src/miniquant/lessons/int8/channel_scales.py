"""One scale for every row."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import stored_scale
from .round_scale import round_scale


def channel_scales(w):
    """A scale for every row: the absmax of the row divided by 127 in
    float32, then given to round_scale.

    w: (out, in) float32, not empty; no scale is beyond float16
    ->   (out,) float32; 0 for a row of zeros
    """
    absmax = np.abs(w).max(axis=1)  # (out,)
    return round_scale(absmax / np.float32(127))


def oracle(w):
    """Row by row, with Python's own numbers."""
    return np.array([stored_scale(row, 127) for row in w.tolist()], np.float32)


def cases(random):
    """The farthest weight positive, negative or absent; scales that float16 changes; other shapes; random rows."""
    made = [
        [[127.0, -127.0], [254.0, 0.0]],
        [[1.0, -127.0], [-254.0, 2.0]],
        [[127.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-254.0, 1.0, 0.0]],  # a row after zeros
        [[1.0, 0.3, 0.2], [-0.7, 0.1, 0.6]],
        np.zeros((3, 4)),
        [[-127.0], [254.0], [0.5]],  # one column
        [[3.0, -5.0, 4.0]],  # one row
        [[0.0, -127.0], [0.0, -254.0]],
        [[1e-9, -1e-9], [190 / 2**24, -190 / 2**24], [95 / 2**24, 0.0]],  # scales of 0 and of float16's smallest number, rounded down and up to it
        [[127.06201934814453, 1.0], [-127.31006622314453, 2.0]],  # halfway between two float16 after / 127, not after * (1 / 127)
        [[65504.0 * 127], [-3e-6]],
        random.normal(0, 0.02, (5, 16)),
    ]
    columns = np.asfortranarray(np.float32([[1, 2, 3], [-40, 5, 6]]))  # column after column in memory
    return [*((np.array(w, np.float32),) for w in made), (columns,)]


EXERCISE = Exercise(
    goal="Give every row of a matrix its own scale, rounded as the file will hold it.",
    reference=channel_scales, oracle=oracle, cases=cases, minutes=10, difficulty="core",
    hints=(
        "A row is an output channel: the weights that one output is computed from. There is one maximum for each row.",
        "The method `max` takes an `axis`. `axis=0` joins the rows of a matrix, and `axis=1` joins its columns. `round_scale` works "
        "on arrays too.",
    ),
    why="one row with a large weight no longer costs all others their precision, and two more bytes a row pay for it.",
    mistakes=(
        Mistake("a scale per column", edit("axis=1", "axis=0"),
            cause="There is one maximum for each column, as `axis=0` gives it.",
            cure="A row is an output channel: use `axis=1`.", see="as many scales as the matrix has columns"),
        Mistake("one scale for all rows", edit("np.abs(w).max(axis=1)", "np.full(len(w), np.abs(w).max())"),
            cause="Every row got the scale of the whole matrix.",
            cure="Take the maximum of each row with `axis=1`.", see="the same number in every place"),
        Mistake("signed maximum", edit("np.abs(w)", "w"),
            cause="The scale comes from the largest weight of the row. A negative weight may be farther from zero.",
            cure="Take `np.abs(w)` before the maximum.",
            see="a scale too small for rows whose weight farthest from zero is negative"),
        Mistake("divided by 128", edit("127", "128"),
            cause="The symmetric range ends at 127 on both sides. 128 does not fit in an int8.",
            cure="Divide by 127.", see="0.992 where 1.0 is expected"),
        Mistake("scale never rounded", edit("round_scale(absmax / np.float32(127))", "absmax / np.float32(127)"),
            cause="The scales still have float32's digits. The file has room for float16's only.",
            cure="Pass them through `round_scale`.", see="scales that differ in the fourth significant digit"),
        Mistake("left in float16",
            edit("round_scale(absmax / np.float32(127))", "(absmax / np.float32(127)).astype(np.float16)"),
            cause="The scales are still float16. An int8 times such a scale is a float16 too, with fewer digits.",
            cure="Add `.astype(np.float32)`, or call `round_scale`.",
            see="the dtype float16 where float32 is expected"),
        Mistake("kept as a column", edit("axis=1", "axis=1, keepdims=True"),
            cause="The scales have the shape (out, 1), and the file stores (out,).",
            cure="Leave `keepdims` out here, and add the axis where you divide.",
            see="the shape (2, 1) where (2,) is expected"),
        Mistake("rounded before the division",
            edit("round_scale(absmax / np.float32(127))", "round_scale(absmax) / np.float32(127)"),
            cause="The scales are quotients of a rounded absmax. Such a quotient need not be a float16, and an absmax beyond float16 becomes infinite.",
            cure="Divide first, then round the quotient.",
            see="scales that differ in the fourth significant digit"),
        Mistake("absolute value taken too late",
            edit("np.abs(w).max(axis=1)", "np.abs(w.max(axis=1))"),
            cause="The scale comes from the absolute value of the row's largest weight. A negative weight may be farther from zero.",
            cure="Exchange the two: `np.abs(w).max(axis=1)`.",
            see="a scale too small for rows whose weight farthest from zero is negative"),
        Mistake("from minimum to maximum",
            edit("np.abs(w).max(axis=1)", "np.ptp(w, axis=1)").edit("127", "255"),
            cause="(max - min) / 255 is the scale of asymmetric quantization, which also stores a zero point.",
            cure="Use the largest absolute value and 127.",
            see="a scale that depends on both ends of the row"),
        Mistake("mean instead of maximum",
            edit("max(axis=1)", "mean(axis=1)"),
            cause="The mean distance from zero is shorter than the largest one, unless all of a row are equal.",
            cure="Take the maximum of each row.",
            see="scales that are too small"),
    ),
)
