"""The exercises of lab 04 on one scale for every row."""

from __future__ import annotations

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from ...quantization import symmetric
from ..shared.by_hand import integer, nearest32, stored_scale
from ..shared.steps import divided, rounded, to_int8

F32 = np.float32

# ---- channel_scales --------------------------------------------------------------------------------------------------


def channel_scales(w: np.ndarray) -> np.ndarray:
    """The reference: w (out, in) float32 -> (out,) float32, rounded to float16."""
    return symmetric.absmax_scales(w, 1, bits=8)[:, 0].astype(F32)


def _channel_oracle(w: np.ndarray) -> np.ndarray:
    return np.array([stored_scale(row, 127) for row in w.tolist()], F32)


def _channel_cases(random: np.random.Generator) -> list[Case]:
    made = [
        [[127.0, -127.0], [254.0, 0.0]],
        [[1.0, -127.0], [-254.0, 2.0]],
        [[127.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
        [[1.0, 0.3, 0.2], [0.1, 0.7, 0.6]],
    ]
    return [
        *((np.array(rows, F32),) for rows in made),
        (np.arange(12, dtype=F32).reshape(3, 4) - 6,),
        (random.normal(0, 0.02, (5, 16)).astype(F32),),
    ]


def _channel_never_rounded(w: np.ndarray) -> np.ndarray:
    return np.abs(w).max(axis=1) / np.float32(127)


def _per_column(w: np.ndarray) -> np.ndarray:
    return rounded(np.abs(w).max(axis=0) / np.float32(127))


def _channel_signed_max(w: np.ndarray) -> np.ndarray:
    return rounded(w.max(axis=1) / np.float32(127))


def _channel_over_128(w: np.ndarray) -> np.ndarray:
    return rounded(np.abs(w).max(axis=1) / np.float32(128))


def _kept_as_a_column(w: np.ndarray) -> np.ndarray:
    return rounded(np.abs(w).max(axis=1, keepdims=True) / np.float32(127))


def _one_for_all_rows(w: np.ndarray) -> np.ndarray:
    return rounded(np.full(len(w), np.abs(w).max() / np.float32(127)))


def _channel_left_in_float16(w: np.ndarray) -> np.ndarray:
    return (np.abs(w).max(axis=1) / np.float32(127)).astype(np.float16)


CHANNEL_SCALES = Exercise(
    name="channel_scales",
    lab="04",
    goal="Give every row of a matrix a scale of its own, rounded as the file will hold it.",
    minutes=10,
    difficulty="core",
    reference=channel_scales,
    oracle=_channel_oracle,
    cases=_channel_cases,
    hints=(
        "A row is an output channel: the weights that one output is computed from. The maximum runs along the row.",
        "`np.abs(w).max(axis=1)` has the shape `(out,)`; divide it by 127 and pass it through `round_scale`.",
    ),
    why="one long row no longer costs all the others their precision, and two more bytes a row pay for it.",
    mistakes=(
        Mistake(
            "a scale per column",
            _per_column,
            "`axis=0` runs down the rows and leaves one maximum for each column.",
            "A row is an output channel: use `axis=1`.",
            "as many scales as the matrix has columns",
        ),
        Mistake(
            "one scale for all rows",
            _one_for_all_rows,
            "Every row got the scale of the whole matrix.",
            "Take the maximum along each row with `axis=1`.",
            "the same number in every place",
        ),
        Mistake(
            "signed maximum",
            _channel_signed_max,
            "You took the largest weight of the row, and a negative one that lies farther from zero was not seen.",
            "Take `np.abs(w)` before the maximum.",
            "a scale too small for rows whose longest weight is negative",
        ),
        Mistake(
            "divided by 128",
            _channel_over_128,
            "The symmetric range ends at 127 on both sides; 128 does not fit in an int8.",
            "Divide by 127.",
            "0.992 where 1.0 is expected",
        ),
        Mistake(
            "scale never rounded",
            _channel_never_rounded,
            "The scales still have float32's digits, and the file has room for float16's.",
            "Pass them through `round_scale`.",
            "scales that differ in the fourth significant digit",
        ),
        Mistake(
            "left in float16",
            _channel_left_in_float16,
            "The scales were rounded to float16 and not converted back, so what is computed from them is rounded too.",
            "Add `.astype(np.float32)`, or call `round_scale`.",
            "the dtype float16 where float32 is expected",
        ),
        Mistake(
            "kept as a column",
            _kept_as_a_column,
            "`keepdims=True` leaves the shape (out, 1), and the file stores (out,).",
            "Leave `keepdims` out here, and add the axis where you divide.",
            "the shape (2, 1) where (2,) is expected",
        ),
    ),
)

# ---- quantize_per_channel --------------------------------------------------------------------------------------------


def quantize_per_channel(w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The reference: w (out, in) float32, scale (out,) float32 -> q (out, in) int8."""
    return symmetric.quantize_rows(w, scale[:, None], bits=8)


def _quantize_oracle(w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    rows = zip(w.tolist(), scale.tolist())
    return np.array([[integer(x, s, 127) for x in row] for row, s in rows], np.int8)


def _quantize_cases(random: np.random.Generator) -> list[Case]:
    made = [
        ([[2.0, 4.0], [8.0, 16.0]], [1.0, 2.0]),
        ([[0.75, -0.75], [0.3, -0.3]], [1.0, 1.0]),
        ([[0.5, 1.5, 2.5], [-0.5, -1.5, -2.5]], [1.0, 1.0]),
        ([[127.4, -127.4], [128.0, -128.0], [200.0, -200.0]], [1.0, 1.0, 1.0]),
        ([[1.0, 2.0], [1e-9, -1e-9]], [1.0, 0.0]),
    ]
    w = random.normal(0, 0.02, (6, 32)).astype(F32)
    return [
        *((np.array(rows, F32), np.array(scale, F32)) for rows, scale in made),
        (w, (np.abs(w).max(axis=1) / F32(127)).astype(np.float16).astype(F32)),
    ]


def _along_columns(w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return to_int8(divided(w, scale))


def _channel_truncated(w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return divided(w, scale[:, None]).clip(-127, 127).astype(np.int8)


def _floored(w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return (w // np.where(scale == 0, np.float32(np.inf), scale)[:, None]).clip(-127, 127).astype(np.int8)


def _channel_half_up(w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return np.floor(divided(w, scale[:, None]) + np.float32(0.5)).clip(-127, 127).astype(np.int8)


def _never_clipped(w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    wrapped = np.rint(divided(w, scale[:, None])).astype(np.int64) % 256  # what the cast does on most machines
    return wrapped.astype(np.uint8).view(np.int8)


def _cast_before_clipping(w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return _never_clipped(w, scale).clip(-127, 127)


def _down_to_minus_128(w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return np.rint(divided(w, scale[:, None])).clip(-128, 127).astype(np.int8)


def _channel_divided_by_zero(w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return to_int8(w / scale[:, None])


def _divided_in_place(w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    w /= np.where(scale == 0, np.float32(np.inf), scale)[:, None]
    return to_int8(w)


QUANTIZE_PER_CHANNEL = Exercise(
    name="quantize_per_channel",
    lab="04",
    goal="Divide every row by its own scale, and round, clip and cast the quotients in the one order that is safe.",
    minutes=10,
    difficulty="core",
    reference=quantize_per_channel,
    oracle=_quantize_oracle,
    cases=_quantize_cases,
    hints=(
        "numpy lines shapes up from the right: (out, in) / (out,) would pair scales with columns. `scale[:, None]` has "
        "the shape (out, 1).",
        "Make the divisor first, infinite where the scale is zero; then `np.rint(w / divisor)`, then "
        "`.clip(-127, 127)`, and `.astype(np.int8)` last.",
    ),
    why="clipping before the cast means that a weight which is too long is stored a little short; the other way round, "
    "it could change its sign.",
    mistakes=(
        Mistake(
            "scales along the columns",
            _along_columns,
            "w / scale pairs the scales with the columns, silently if the matrix is square.",
            "Divide by `scale[:, None]`, of shape (out, 1).",
            "a broadcasting error for (3, 2) and wrong numbers for (2, 2)",
        ),
        Mistake(
            "truncated",
            _channel_truncated,
            "The cast to int8 cuts the fraction off.",
            "Call `np.rint` before it.",
            "0 where 1 is expected for 0.75",
        ),
        Mistake(
            "rounded down",
            _floored,
            "`//` and `np.floor` round towards minus infinity, so every negative weight grows.",
            "Divide with `/` and call `np.rint`.",
            "-1 where 0 is expected for -0.3",
        ),
        Mistake(
            "half rounded up",
            _channel_half_up,
            "`floor(x + 0.5)` sends every tie upwards.",
            "Use `np.rint`, which sends ties to the even neighbour.",
            "1 where 0 is expected for 0.5",
        ),
        Mistake(
            "never clipped",
            _never_clipped,
            "A weight may be longer than 127 steps, and an int8 that is given 128 wraps around to -128.",
            "Put `.clip(-127, 127)` before the cast.",
            "-128 where 127 is expected for 128 steps, and -56 for 200",
        ),
        Mistake(
            "cast before clipping",
            _cast_before_clipping,
            "An int8 that is given 200 wraps around to -56, and clipping comes too late to see it.",
            "Clip to [-127, 127] first and cast last.",
            "-127 where 127 is expected for 128 steps, and -56 for 200",
        ),
        Mistake(
            "clipped to -128",
            _down_to_minus_128,
            "[-128, 127] is what an int8 holds; a symmetric range leaves -128 unused, so that w and -w get opposite "
            "integers.",
            "Clip to [-127, 127].",
            "-128 where -127 is expected",
        ),
        Mistake(
            "divided by zero",
            _channel_divided_by_zero,
            "A row of zeros, or of weights too small for float16, has the scale 0, and dividing by it gives infinity "
            "or NaN.",
            "Use `np.where(scale == 0, np.float32(np.inf), scale)` as the divisor: anything over infinity is 0.",
            "127 where 0 is expected for weights near 1e-9, or a warning about a division",
        ),
        Mistake(
            "weights changed in place",
            _divided_in_place,
            "`w /= …` overwrites the caller's weights with the quotients.",
            "Write `w / …`, which makes a new array.",
            "a check that says your argument changed",
        ),
    ),
)

# ---- dequantize_per_channel ------------------------------------------------------------------------------------------


def dequantize_per_channel(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The reference: q (out, in) int8, scale (out,) float32 -> (out, in) float32."""
    return symmetric.dequantize_rows(q, scale[:, None])


def _dequantize_oracle(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return np.array([[nearest32(x * s) for x in row] for row, s in zip(q.tolist(), scale.tolist())], F32)


def _dequantize_cases(random: np.random.Generator) -> list[Case]:
    made = [
        ([[1, 2], [3, 4]], [1.0, 10.0]),
        ([[1, -1, 2], [0, 3, -3]], [0.5, 0.25]),
        ([[100, 127], [-127, -100]], [2.0, 2.0]),
        ([[5, 6, 7], [8, 9, 10], [0, 0, 0]], [1.0, 0.5, 0.0]),
    ]
    q = random.integers(-127, 128, (4, 16))
    return [
        *((np.array(rows, np.int8), np.array(scale, F32)) for rows, scale in made),
        (q.astype(np.int8), random.uniform(0, 0.01, 4).astype(np.float16).astype(F32)),
    ]


def _multiplied_along_columns(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return q.astype(np.float32) * scale


def _multiplied_in_float16(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return q * scale.astype(np.float16)[:, None]


def _multiplied_in_float64(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return q.astype(float) * scale[:, None]


def _cast_back_to_int8(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return (q * scale[:, None]).astype(np.int8)


def _divided_again(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return divided(q.astype(np.float32), scale[:, None])


DEQUANTIZE_PER_CHANNEL = Exercise(
    name="dequantize_per_channel",
    lab="04",
    goal="Bring the weights back: every integer times the scale of its row, in float32.",
    minutes=5,
    difficulty="core",
    reference=dequantize_per_channel,
    oracle=_dequantize_oracle,
    cases=_dequantize_cases,
    hints=(
        "The same `scale[:, None]` as before lines the scales up with the rows.",
        "Convert the integers with `q.astype(np.float32)` before you multiply, so that the product is float32 too.",
    ),
    why="this line is all that a program needs to read your weights, in any language.",
    mistakes=(
        Mistake(
            "scales along the columns",
            _multiplied_along_columns,
            "q * scale pairs the scales with the columns, silently if the matrix is square.",
            "Multiply by `scale[:, None]`.",
            "20.0 where 2.0 is expected in the first row",
        ),
        Mistake(
            "multiplied in float16",
            _multiplied_in_float16,
            "int8 times float16 is float16 in numpy, and the product loses digits that the scale did not have to lose.",
            "Multiply in float32: `q.astype(np.float32) * scale[:, None]`.",
            "the dtype float16 where float32 is expected",
        ),
        Mistake(
            "multiplied in float64",
            _multiplied_in_float64,
            "`astype(float)` makes float64, twice the memory, and a file or a model would have to round it again.",
            "Say `np.float32`.",
            "the dtype float64 where float32 is expected",
        ),
        Mistake(
            "cast back to int8",
            _cast_back_to_int8,
            "The weights are fractions again; as integers they are mostly 0.",
            "Leave the product in float32.",
            "the dtype int8 where float32 is expected",
        ),
        Mistake(
            "divided instead of multiplied",
            _divided_again,
            "Quantizing divides by the scale; the way back multiplies.",
            "Write `*`.",
            "numbers far too large for small scales",
        ),
    ),
)
