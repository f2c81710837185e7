"""Integers, each row measured with its own scale."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import integer


def quantize_per_channel(w, scale):
    """8-bit integers, each row measured with its own scale.

    w: (out, in) float32, scale: (out,) float32   ->   (out, in) int8 in [-127, 127]
    w / scale in float32, rounded half to even; 0 where the scale is 0
    """
    divisor = np.where(scale == 0, np.float32(np.inf), scale)[:, None]  # (out, 1)
    return np.rint(w / divisor).clip(-127, 127).astype(np.int8)


def oracle(w, scale):
    """One weight at a time, with Python's own ``round``."""
    rows = zip(w.tolist(), scale.tolist())
    return np.array([[integer(x, s, 127) for x in row] for row, s in rows], np.int8)


def cases(random):
    """Whole steps, fractions and ties; weights beyond 127 steps; a scale of 0; random rows."""
    drawn = random.normal(0, 0.02, (6, 32)).astype(np.float32)
    made = [
        ([[2.0, 4.0], [8.0, 16.0]], [1.0, 2.0]),
        ([[0.75, -0.75], [0.3, -0.3]], [1.0, 1.0]),
        ([[0.5, 1.5, 2.5], [-0.5, -1.5, -2.5]], [1.0, 1.0]),
        ([[127.4, -127.4], [128.0, -128.0], [200.0, -200.0]], [1.0, 1.0, 1.0]),
        ([[1.0, 2.0], [1e-9, -1e-9]], [1.0, 0.0]),
        (drawn, (np.abs(drawn).max(axis=1) / np.float32(127)).astype(np.float16)),
    ]
    return [(np.array(w, np.float32), np.array(scale, np.float32)) for w, scale in made]


EXERCISE = Exercise(
    goal="Divide every row by its own scale, and round, clip and cast the quotients in the one order that is safe.",
    reference=quantize_per_channel, oracle=oracle, cases=cases, minutes=10, difficulty="core",
    hints=(
        "numpy lines shapes up from the right: (out, in) / (out,) would pair scales with columns. `scale[:, None]` has the shape (out, 1).",
        "Make the divisor first, infinite where the scale is zero; then `np.rint(w / divisor)`, then `.clip(-127, 127)`, and `.astype(np.int8)` last.",
    ),
    why="clipping before the cast means that a weight which is too long is stored a little short; the other way round, it could change its sign.",
    mistakes=(
        Mistake("scales along the columns", edit("[:, None]", ""),
            cause="w / scale pairs the scales with the columns, silently if the matrix is square.",
            cure="Divide by `scale[:, None]`, of shape (out, 1).",
            see="a broadcasting error for (3, 2) and wrong numbers for (2, 2)"),
        Mistake("truncated", edit("np.rint", ""),
            cause="The cast to int8 cuts the fraction off.",
            cure="Call `np.rint` before it.", see="0 where 1 is expected for 0.75"),
        Mistake("rounded down", edit("np.rint(w / divisor)", "(w // divisor)"),
            cause="`//` and `np.floor` round towards minus infinity, so every negative weight grows.",
            cure="Divide with `/` and call `np.rint`.", see="-1 where 0 is expected for -0.3"),
        Mistake("half rounded up", edit("np.rint(w / divisor)", "np.floor(w / divisor + 0.5)"),
            cause="`floor(x + 0.5)` sends every tie upwards.",
            cure="Use `np.rint`, which sends ties to the even neighbour.", see="1 where 0 is expected for 0.5"),
        Mistake("never clipped", edit(".clip(-127, 127)", ".astype(np.int64)"),
            cause="A weight may be longer than 127 steps, and an int8 that is given 128 wraps around to -128.",
            cure="Put `.clip(-127, 127)` before the cast.",
            see="-128 where 127 is expected for 128 steps, and -56 for 200"),
        Mistake("cast before clipping",
            edit(".clip(-127, 127).astype(np.int8)", ".astype(np.int64).astype(np.int8).clip(-127, 127)"),
            cause="An int8 that is given 200 wraps around to -56, and clipping comes too late to see it.",
            cure="Clip to [-127, 127] first and cast last.",
            see="-127 where 127 is expected for 128 steps, and -56 for 200"),
        Mistake("clipped to -128", edit("-127", "-128"),
            cause="[-128, 127] is what an int8 holds; a symmetric range leaves -128 unused, so that w and -w get opposite integers.",
            cure="Clip to [-127, 127].", see="-128 where -127 is expected"),
        Mistake("divided by zero", edit("np.where(scale == 0, np.float32(np.inf), scale)", "scale"),
            cause="A row of zeros, or of weights too small for float16, has the scale 0, and dividing by it gives infinity or NaN.",
            cure="Use `np.where(scale == 0, np.float32(np.inf), scale)` as the divisor: anything over infinity is 0.",
            see="127 where 0 is expected for weights near 1e-9, or a warning about a division"),
        Mistake("weights changed in place",
            edit("return np.rint(w / divisor)", "w /= divisor\n    return np.rint(w)"),
            cause="`w /= …` overwrites the caller's weights with the quotients.",
            cure="Write `w / …`, which makes a new array.", see="a check that says your argument changed"),
    ),
)
