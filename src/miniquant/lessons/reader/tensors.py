"""The exercises of lab 07 on the bytes of one tensor: Q8 per channel, Q4 per group."""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from ..shared.gguf_lite_by_hand import pack_oracle
from .nibbles import minus_eight, swapped, unpack_int4, unpacked, unsigned

F32 = np.float32

# ---- dequantize_q8 ---------------------------------------------------------------------------------------------------


def dequantize_q8(raw: bytes, dims: tuple) -> np.ndarray:
    """The reference: the bytes of a Q8 tensor and its dims (out, in) -> (out, in) float32."""
    out, width = dims
    scale = np.frombuffer(raw, "<f2", out).astype(F32)
    return np.frombuffer(raw, np.int8, out * width, 2 * out).reshape(dims) * scale[:, None]


def q8_values_oracle(raw: bytes, dims: tuple) -> np.ndarray:
    """One number at a time; q × scale is exact in float32."""
    out, width = dims
    rows = []
    for i in range(out):
        (scale,) = struct.unpack("<e", raw[2 * i : 2 * i + 2])
        start = 2 * out + i * width
        rows.append([(byte - 256 if byte > 127 else byte) * scale for byte in raw[start : start + width]])
    return np.array(rows, F32)


def _q8_bytes(scales: list[float], values: list[list[int]]) -> bytes:
    return struct.pack(f"<{len(scales)}e", *scales) + b"".join(struct.pack(f"<{len(row)}b", *row) for row in values)


def _q8_cases(random: np.random.Generator) -> list[Case]:
    made = [
        ([1.0], [[1, 2, -3]]),
        ([1.0, 2.0], [[1, 2, 3], [1, 2, -128]]),
        ([0.5, 0.25], [[1, -1], [127, -127]]),
        ([0.0, 1.0, 2.0], [[0, 0, 0, 0], [1, -2, 3, -4], [5, 6, 7, 8]]),
        ([0.1, 0.3], [[100, -101, 127, 3], [33, 77, -99, 126]]),
    ]
    scales = [abs(float(x)) for x in random.normal(0, 0.01, 8).astype(np.float16)]
    made.append((scales, random.integers(-127, 128, (8, 16)).tolist()))
    return [(_q8_bytes(s, v), (len(v), len(v[0]))) for s, v in made]


def _dequantized_q8(
    raw: bytes,
    dims: tuple,
    *,
    skip: int | None = None,
    last=False,
    form="<f2",
    kind=np.int8,
    half=False,
    wrong_dims=False,
) -> np.ndarray:
    out, width = dims
    scale = np.frombuffer(raw, form, out, out * width if last else 0)
    values = np.frombuffer(raw, kind, out * width, 0 if last else 2 * out if skip is None else skip)
    values = values.reshape(dims[::-1] if wrong_dims else dims)
    scale = scale[np.arange(values.size).reshape(values.shape) // width]
    with np.errstate(all="ignore"):
        return (values * (scale.astype(np.float16) if half else scale.astype(F32))).astype(F32)


def _per_column(raw: bytes, dims: tuple) -> np.ndarray:
    out, width = dims
    scale = np.frombuffer(raw, "<f2", out).astype(F32)
    return np.frombuffer(raw, np.int8, out * width, 2 * out).reshape(dims) * scale


def _row_by_row(raw: bytes, dims: tuple) -> np.ndarray:
    rows = np.frombuffer(raw, np.uint8).reshape(dims[0], 2 + dims[1])
    scale = rows[:, :2].copy().view("<f2").astype(F32)
    with np.errstate(all="ignore"):
        return rows[:, 2:].view(np.int8) * scale


def _left_in_float16(raw: bytes, dims: tuple) -> np.ndarray:
    out, width = dims
    scale = np.frombuffer(raw, "<f2", out)
    with np.errstate(over="ignore"):
        return np.frombuffer(raw, np.int8, out * width, 2 * out).reshape(dims) * scale[:, None]


HALF = (
    "The product was computed in float16, which keeps 11 bits, and q × scale needs up to 19.",
    "Convert the scales to float32 before you multiply.",
)

DEQUANTIZE_Q8 = Exercise(
    name="dequantize_q8",
    lab="07",
    goal="Turn the bytes of a Q8 tensor into a float32 matrix: each row times its own scale.",
    minutes=5,
    difficulty="core",
    reference=dequantize_q8,
    oracle=q8_values_oracle,
    cases=_q8_cases,
    hints=(
        '`np.frombuffer(raw, "<f2", count=out)` reads the scales; the values begin at byte 2 × out and are `np.int8`.',
        "Reshape the values to (out, in), convert the scales to float32, and give them the shape (out, 1) with "
        "`scale[:, None]`, so that each row meets its own.",
    ),
    why="one multiplication a weight is all that stands between the file and the model.",
    mistakes=(
        Mistake(
            "values read from byte 0",
            partial(_dequantized_q8, skip=0),
            "The scales stand in front, and you took their bytes for values.",
            "Let the values begin at byte 2 × out.",
            "large odd numbers at the start, and everything shifted",
        ),
        Mistake(
            "scales read from the end",
            partial(_dequantized_q8, last=True),
            "The scales come first in this format, and you looked for them behind the values.",
            "Read the scales from byte 0 and the values from byte 2 × out.",
            "values and scales both wrong",
        ),
        Mistake(
            "values unsigned",
            partial(_dequantized_q8, kind=np.uint8),
            "The values were read as uint8, so -1 became 255.",
            "Read them as `np.int8`.",
            "positive values right, negative ones large and positive",
        ),
        Mistake(
            "one scale a column",
            _per_column,
            "Without a second axis numpy lines the scales up with the columns, and a channel is a row.",
            "Give the scales the shape (out, 1): `scale[:, None]`.",
            "an error about shapes, or wrong numbers in a square matrix",
        ),
        Mistake(
            "left in float16",
            _left_in_float16,
            "int8 times float16 is float16 in numpy, and the reader promises float32.",
            "Convert the scales to float32 before you multiply.",
            "a result of dtype float16",
        ),
        Mistake(
            "multiplied in float16",
            partial(_dequantized_q8, half=True),
            *HALF,
            "almost right, and off in the fourth digit",
        ),
        Mistake(
            "row by row",
            _row_by_row,
            "You looked for each scale in front of its own row, much as in the blocks of real GGUF, and here all "
            "scales come first.",
            "Read all scales first, then all values.",
            "right for a matrix of one row, wrong for others",
        ),
        Mistake(
            "big-endian scales",
            partial(_dequantized_q8, form=">f2"),
            "The two bytes of each scale were read in the wrong order.",
            "Read the scales as `<f2`, with the sign that points left.",
            "numbers close to zero everywhere",
        ),
        Mistake(
            "dims reversed",
            partial(_dequantized_q8, wrong_dims=True),
            "The matrix was given the shape (in, out), and the dims are (out, in).",
            "Reshape to `dims` as it is.",
            "the right numbers in the wrong shape",
        ),
    ),
)

# ---- dequantize_q4 ---------------------------------------------------------------------------------------------------


def dequantize_q4(raw: bytes, dims: tuple) -> np.ndarray:
    """The reference: the bytes of a Q4 tensor and its dims (out, in) -> (out, in) float32."""
    out, width = dims
    n_scales = out * width // 64
    scale = np.frombuffer(raw, "<f2", n_scales).astype(F32).reshape(out, -1, 1)
    values = unpack_int4(np.frombuffer(raw, np.uint8, offset=2 * n_scales))
    return (values.reshape(out, -1, 64) * scale).reshape(dims)


def q4_values_oracle(raw: bytes, dims: tuple) -> np.ndarray:
    """One weight at a time: which group, which byte, which half of it."""
    out, width = dims
    n_scales = out * (width // 64)
    flat = []
    for i in range(out * width):
        (scale,) = struct.unpack_from("<e", raw, 2 * (i // 64))
        byte = raw[2 * n_scales + i // 2]
        nibble = byte // 16 if i % 2 else byte % 16
        flat.append((nibble - 16 if nibble > 7 else nibble) * scale)
    return np.array([flat[i * width : (i + 1) * width] for i in range(out)], F32)


def _q4_bytes(scales: Any, values: np.ndarray) -> bytes:
    flat = np.asarray(scales, F32).reshape(-1).tolist()
    return struct.pack(f"<{len(flat)}e", *flat) + pack_oracle(values.astype(np.int8)).tobytes()


def _q4_cases(random: np.random.Generator) -> list[Case]:
    ramp = np.tile(np.arange(-8, 8), 4)
    made = [
        ([1.0], ramp[None]),
        ([1.0, 2.0], np.stack([ramp, ramp[::-1]])),
        ([[1.0, 2.0]], np.concatenate([ramp, ramp])[None]),
        ([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]], np.tile(ramp, (2, 3))),
        ([[0.1, 0.3], [0.0, 0.7]], np.tile(ramp, (2, 2))),
    ]
    made.append((np.abs(random.normal(0, 0.01, (4, 3))), random.integers(-8, 8, (4, 192))))
    return [(_q4_bytes(s, v), v.shape) for s, v in made]


def _dequantized_q4(
    raw: bytes, dims: tuple, *, unpack: Any = None, order="repeat", skip=True, half=False
) -> np.ndarray:
    """Right unless told otherwise; each switch is a mistake."""
    out, width = dims
    n_scales = out * width // 64
    scale = np.frombuffer(raw, "<f2", n_scales).astype(np.float16 if half else F32)
    packed = np.frombuffer(raw, np.uint8, out * width // 2, 2 * n_scales if skip else 0)
    values = (unpack or unpacked)(packed.reshape(out, -1)).reshape(out, width)
    if order == "tile":
        columns = np.tile(scale.reshape(out, -1), (1, 64))
    elif order == "transposed":
        columns = np.repeat(scale.reshape(-1, out).T, 64, axis=1)
    elif order == "row":
        columns = scale.reshape(out, -1)[:, :1]
    else:
        columns = np.repeat(scale.reshape(out, -1), 64, axis=1)
    return (values * columns).astype(F32)


def _q4_left_in_float16(raw: bytes, dims: tuple) -> np.ndarray:
    out, width = dims
    n_scales = out * width // 64
    scale = np.frombuffer(raw, "<f2", n_scales).reshape(out, -1, 1)
    return (unpacked(np.frombuffer(raw, np.uint8, offset=2 * n_scales)).reshape(out, -1, 64) * scale).reshape(dims)


def _not_spread(raw: bytes, dims: tuple) -> np.ndarray:
    out, width = dims
    n_scales = out * width // 64
    scale = np.frombuffer(raw, "<f2", n_scales).astype(F32).reshape(out, -1)
    return unpacked(np.frombuffer(raw, np.uint8, offset=2 * n_scales)).reshape(dims) * scale


def _blocks(raw: bytes, dims: tuple) -> np.ndarray:
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, 34)
    scale = blocks[:, :2].copy().view("<f2").astype(F32)
    with np.errstate(all="ignore"):
        return (unpacked(blocks[:, 2:]) * scale).reshape(dims)


DEQUANTIZE_Q4 = Exercise(
    name="dequantize_q4",
    lab="07",
    goal="Turn the bytes of a Q4 tensor into a float32 matrix: each group of 64 neighbours times its own scale.",
    minutes=5,
    difficulty="core",
    reference=dequantize_q4,
    oracle=q4_values_oracle,
    cases=_q4_cases,
    hints=(
        "There are out × in / 64 scales, two bytes each, row after row; everything behind them is packed values for "
        "your `unpack_int4`.",
        "Reshape the values to (out, groups, 64) and the float32 scales to (out, groups, 1), multiply, and reshape the "
        "product back to `dims`.",
    ),
    why="the reshape here must undo the writer's; if the two differ, each number is right and in the wrong place.",
    mistakes=(
        Mistake(
            "scales change from weight to weight",
            partial(_dequantized_q4, order="tile"),
            "Neighbours were given different scales, as `np.tile` or a reshape to (out, 64, groups) does, and all 64 "
            "share one.",
            "Reshape to (out, groups, 64), the 64 last, or use `np.repeat(scale, 64, axis=1)`.",
            "right for rows of one group, wrong for longer rows",
        ),
        Mistake(
            "scales not spread over their groups",
            _not_spread,
            "(out, in) times (out, groups) means nothing to numpy, unless there is one group.",
            "Reshape the values to (out, groups, 64) and the scales to (out, groups, 1) before you multiply.",
            "`operands could not be broadcast together`",
        ),
        Mistake(
            "scales transposed",
            partial(_dequantized_q4, order="transposed"),
            "The scales were taken for (groups, out), and they lie in the file as (out, groups).",
            "Reshape the scales to (out, groups).",
            "right for one row or one group, wrong for more",
        ),
        Mistake(
            "one scale a row",
            partial(_dequantized_q4, order="row"),
            "Only the first scale of each row was used.",
            "Give each group its own: reshape the scales to (out, groups, 1).",
            "the first 64 columns right, the rest wrong",
        ),
        Mistake(
            "sign not restored",
            partial(_dequantized_q4, unpack=unsigned),
            "The nibbles 8 to 15 were left positive, and they mean -8 to -1.",
            "Mend `unpack_int4`: subtract 16 where the nibble is 8 or more.",
            "no negative weights at all",
        ),
        Mistake(
            "nibbles swapped",
            partial(_dequantized_q4, unpack=swapped),
            "The high nibble went to the even index.",
            "Mend `unpack_int4`: the low nibble comes first.",
            "each pair of weights in the wrong order",
        ),
        Mistake(
            "shifted by eight",
            partial(_dequantized_q4, unpack=minus_eight),
            "Subtracting 8 is how real GGUF's Q4_0 reads a nibble; this format keeps two's complement.",
            "Mend `unpack_int4`: subtract 16, and only where the nibble is 8 or more.",
            "-8 × scale where 0 is expected",
        ),
        Mistake(
            "values read from byte 0",
            partial(_dequantized_q4, skip=False),
            "The scales stand in front, and you took their bytes for packed values.",
            "Let the values begin behind the scales, at byte 2 × out × in / 64.",
            "everything shifted by a few weights",
        ),
        Mistake(
            "block by block",
            _blocks,
            "You looked for a scale in front of every 32 bytes, as in real GGUF, and here all scales come first.",
            "Read all scales first, then all values.",
            "right for a single group, wrong for more",
        ),
        Mistake(
            "left in float16",
            _q4_left_in_float16,
            "int8 times float16 is float16 in numpy, and the reader promises float32.",
            "Convert the scales to float32 before you multiply.",
            "a result of dtype float16",
        ),
        Mistake(
            "multiplied in float16",
            partial(_dequantized_q4, half=True),
            *HALF,
            "almost right, and off in the fourth digit",
        ),
    ),
)
