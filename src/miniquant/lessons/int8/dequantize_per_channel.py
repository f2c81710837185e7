"""The weights that the integers of rows stand for."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest32


def dequantize_per_channel(q, scale):
    """The weights that the integers stand for.

    q: (out, in) int8, scale: (out,) float32   ->   (out, in) float32
    """
    return q.astype(np.float32) * scale[:, None]


def oracle(q, scale):
    """One product at a time."""
    return np.array([[nearest32(x * s) for x in row] for row, s in zip(q.tolist(), scale.tolist())], np.float32)


def cases(random):
    """Products that can be read by eye, then random integers and scales."""
    made = [
        ([[1, 2], [3, 4]], [1.0, 10.0]),
        ([[1, -1, 2], [0, 3, -3]], [0.5, 0.25]),
        ([[100, 127], [-127, -100]], [2.0, 2.0]),
        ([[5, 6, 7], [8, 9, 10], [0, 0, 0]], [1.0, 0.5, 0.0]),
        (random.integers(-127, 128, (4, 16)), random.uniform(0, 0.01, 4).astype(np.float16)),
    ]
    return [(np.array(q, np.int8), np.array(scale, np.float32)) for q, scale in made]


EXERCISE = Exercise(
    goal="Bring the weights back: every integer times the scale of its row, in float32.",
    reference=dequantize_per_channel, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        "The same `scale[:, None]` as before lines the scales up with the rows.",
        "Convert the integers with `q.astype(np.float32)` before you multiply, so that the product is float32 too.",
    ),
    why="this line is all that a program needs to read your weights, in any language.",
    mistakes=(
        Mistake("scales along the columns", edit("[:, None]", ""),
            cause="q * scale pairs the scales with the columns, silently if the matrix is square.",
            cure="Multiply by `scale[:, None]`.", see="20.0 where 2.0 is expected in the first row"),
        Mistake("multiplied in float16", edit("q.astype(np.float32) * scale", "q * scale.astype(np.float16)"),
            cause="int8 times float16 is float16 in numpy, and the product loses digits that the scale did not have to lose.",
            cure="Multiply in float32: `q.astype(np.float32) * scale[:, None]`.",
            see="the dtype float16 where float32 is expected"),
        Mistake("multiplied in float64", edit("np.float32", "float"),
            cause="`astype(float)` makes float64, twice the memory, and a file or a model would have to round it again.",
            cure="Say `np.float32`.", see="the dtype float64 where float32 is expected"),
        Mistake("cast back to int8",
            edit("q.astype(np.float32) * scale[:, None]", "(q * scale[:, None]).astype(np.int8)"),
            cause="The weights are fractions again; as integers they are mostly 0.",
            cure="Leave the product in float32.", see="the dtype int8 where float32 is expected"),
        Mistake("divided instead of multiplied", edit(" * ", " / "),
            cause="Quantizing divides by the scale; the way back multiplies.",
            cure="Write `*`.", see="numbers far too large for small scales"),
    ),
)
