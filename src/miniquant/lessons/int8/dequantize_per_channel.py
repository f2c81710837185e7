"""The weights that the integers of rows stand for."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest32


def dequantize_per_channel(q, scale):
    """The weights that the integers stand for: each integer times the scale
    of its row.

    q: (out, in) int8, from -128 to 127; scale: (out,) float32, finite,
        not below 0
    ->   (out, in) float32
    """
    return q.astype(np.float32) * scale[:, None]


def oracle(q, scale):
    """One product at a time."""
    return np.array([[nearest32(x * s) for x in row] for row, s in zip(q.tolist(), scale.tolist())], np.float32)


def cases(random):
    """Products that can be read by eye, the ends of int8, a scale of 0, then random integers and scales."""
    made = [
        ([[1, 2], [3, 4]], [1.0, 10.0]),
        ([[1, -1, 2], [0, 3, -3]], [0.5, 0.25]),
        ([[100], [-127], [0]], [2.0, 3.0, 2.0]),
        ([[5, 6, 7], [8, 9, 10], [1, -2, 0]], [1.0, 0.0, 0.5]),  # a row after a scale of 0
        ([[127, -127, -128], [100, -3, 7], [127, -128, 5]], [2.0**-24, 1e-40, 1e36]),
        ([[3, -7], [100, 1]], [0.1, 1 / 3]),  # scales with all the digits of float32
        (np.array([[1, 2, 3], [4, 5, 6]], np.int8).T, [1.0, 10.0, 100.0]),  # in memory column by column
        (random.integers(-127, 128, (4, 16)), random.uniform(0, 0.01, 4).astype(np.float16)),
    ]
    return [(np.asarray(q, np.int8), np.array(scale, np.float32)) for q, scale in made]


def factors(q, scale):
    """The integers and the scales, whose product is the result."""
    return {"the integers": q, "the scales": scale[:, None]}


EXERCISE = Exercise(
    goal="Bring the weights back: every integer times the scale of its row, in float32.",
    reference=dequantize_per_channel, oracle=oracle, cases=cases, factors=factors, minutes=5, difficulty="core",
    hints=(
        "The scales must belong to the rows here too, as in `quantize_per_channel`. The product must be float32.",
        "`[:, None]` makes a column of the scales. `astype` converts the integers before they are multiplied.",
    ),
    why="a program in any language needs this one line to read your weights.",
    mistakes=(
        Mistake("scales along the columns", edit("[:, None]", ""),
            cause="The scales are used for the columns, as `q * scale` does. For a square matrix numpy does not complain.",
            cure="Multiply by `scale[:, None]`.", see="20.0 where 2.0 is expected in the first row"),
        Mistake("multiplied in float16", edit("q.astype(np.float32) * scale", "q * scale.astype(np.float16)"),
            cause="The result is float16, which has fewer digits than float32.",
            cure="Multiply in float32: `q.astype(np.float32) * scale[:, None]`.",
            see="the dtype float16 where float32 is expected"),
        Mistake("multiplied in float64", edit("np.float32", "float"),
            cause="The result is float64. That takes twice the memory, and a model would round it to float32 again.",
            cure="Use `np.float32`.", see="the dtype float64 where float32 is expected"),
        Mistake("cast back to int8",
            edit("q.astype(np.float32) * scale[:, None]", "(q * scale[:, None]).astype(np.int8)"),
            cause="The weights are int8 again, so they have lost their fractions. With small scales most of them are 0.",
            cure="Leave the product in float32.", see="the dtype int8 where float32 is expected"),
        Mistake("divided instead of multiplied", edit(" * ", " / "),
            cause="Quantizing divides by the scale. The way back multiplies.",
            cure="Write `*`.", see="numbers far too large for small scales"),
        Mistake("one scale for all rows",
            edit("scale[:, None]", "scale.max()"),
            cause="Every row was multiplied by the largest scale.",
            cure="Each row has its own scale: multiply by `scale[:, None]`.",
            see="the row with the largest scale right, the others too large"),
        Mistake("rounded to float16 and back",
            edit("q.astype(np.float32) * scale[:, None]", "(q.astype(np.float32) * scale[:, None]).astype(np.float16).astype(np.float32)"),
            cause="The products went through float16, which has fewer digits. Only the scale is a float16 in the file.",
            cure="Leave the product in float32.",
            see="numbers that differ in the fourth significant digit"),
    ),
)
