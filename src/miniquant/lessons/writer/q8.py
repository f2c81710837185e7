"""The exercise of lab 06 on the bytes of one Q8 tensor."""

from __future__ import annotations

import struct
from functools import partial

import numpy as np

from ...formats.gguf_lite import file as gguf_io
from ...lab.compare import Fields
from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import integer, stored_scale
from ..shared.steps import divided, rounded, to_int8

F32 = np.float32

# ---- encode_q8 -------------------------------------------------------------------------------------------------------


def encode_q8(w: np.ndarray) -> bytes:
    """The reference: w (out, in) float32 -> out float16 scales, then out × in int8."""
    return b"".join(gguf_io.encode_tensor(w, gguf_io.DType.Q8_PER_CHANNEL))


def q8_oracle(w: np.ndarray) -> bytes:
    """One row at a time, one number at a time."""
    scales, values = b"", b""
    for row in w.tolist():
        scale = stored_scale(row, 127)
        scales += struct.pack("<e", scale)
        values += struct.pack(f"<{len(row)}b", *(integer(x, scale, 127) for x in row))
    return scales + values


def q8_fields(w: np.ndarray) -> Fields:
    """The scale of each row, then each row."""
    out, width = w.shape
    fields = [(f"the scale of row {i}", 2 * i, 2 * i + 2) for i in range(out)]
    return fields + [(f"the values of row {i}", 2 * out + i * width, 2 * out + (i + 1) * width) for i in range(out)]


def _q8_cases(random: np.random.Generator) -> list[Case]:
    small = [
        [[127, 1, -1]],
        [[127, 2.5, -2.5, 0.5]],
        [[1, 2, 127], [254, -2, 4]],
        [[1, 2], [127, -254], [-63.5, 0]],
        [[0, 0], [127, 64]],
        [[127.05, 2.5005, -3.5005]],  # the scale 1.0004 becomes 1 in float16
    ]
    toy = (np.arange(32).reshape(4, 8) - 16) / 10
    return [*((np.array(a, F32),) for a in [*small, toy]), (random.normal(0, 0.02, (8, 96)).astype(F32),)]


def _q8_parts(w: np.ndarray, qmax: int = 127, over: float = 127, axis: int | None = 1) -> tuple[np.ndarray, np.ndarray]:
    scale = rounded(np.abs(w).max(axis=axis, keepdims=True) / F32(over))
    return scale.astype("<f2"), to_int8(divided(w, scale), qmax)


def _q8(w: np.ndarray, form: str = "<f2", values_first: bool = False, add: int = 0, **how) -> bytes:
    scale, values = _q8_parts(w, **how)
    parts = [scale.astype(form).tobytes(), (values.astype(np.int16) + add).astype(np.uint8).tobytes()]
    return b"".join(reversed(parts) if values_first else parts)


def _q8_by_rows(w: np.ndarray) -> bytes:
    return b"".join(scale.tobytes() + row.tobytes() for scale, row in zip(*_q8_parts(w)))


def _q8_rounded_late(w: np.ndarray) -> bytes:
    scale = np.abs(w).max(axis=1, keepdims=True) / F32(127)
    return scale.astype("<f2").tobytes() + to_int8(divided(w, scale)).tobytes()


def _q8_cut(w: np.ndarray) -> bytes:
    scale, _ = _q8_parts(w)
    return scale.tobytes() + divided(w, scale).clip(-127, 127).astype(np.int8).tobytes()


def _q8_half_up(w: np.ndarray) -> bytes:
    scale, _ = _q8_parts(w)
    return scale.tobytes() + np.floor(divided(w, scale) + 0.5).clip(-127, 127).astype(np.int8).tobytes()


def _q8_not_lined_up(w: np.ndarray) -> bytes:
    scale = rounded(np.abs(w).max(axis=1) / F32(127))  # (out,)
    return scale.astype("<f2").tobytes() + to_int8(divided(w, scale)).tobytes()


def _q8_signed_max(w: np.ndarray) -> bytes:
    scale = rounded(w.max(axis=1, keepdims=True) / F32(127))
    return scale.astype("<f2").tobytes() + to_int8(divided(w, scale)).tobytes()


def _q8_columns(w: np.ndarray) -> bytes:
    scale, values = _q8_parts(w)
    return scale.tobytes() + values.T.tobytes()


SCALES_LAST = (
    "The scales follow the values, and a reader takes the first bytes for scales.",
    "Join the scales first, then the values.",
)
ROUNDED_LATE = (
    "You divided by the float32 scale and rounded it to float16 only for the file, so the reader multiplies by "
    "another number than you divided by.",
    "Round the scale to float16 before the division, and divide by the rounded one.",
)

ENCODE_Q8 = Exercise(
    name="encode_q8",
    lab="06",
    goal="Quantize a matrix per channel and lay it out: all float16 scales, then all int8 values, row after row.",
    minutes=5,
    difficulty="core",
    reference=encode_q8,
    oracle=q8_oracle,
    cases=_q8_cases,
    fields=q8_fields,
    hints=(
        "`np.abs(w).max(axis=1, keepdims=True) / 127` is a scale for each row; round it with `.astype(np.float16)` "
        "before anything is divided by it. A row of zeros has scale 0, so divide by 1 there.",
        '`np.rint(w / scale).clip(-127, 127).astype(np.int8)` are the values; `scale.astype("<f2").tobytes()` and '
        "`values.tobytes()` are the two parts.",
    ),
    why="a reader in any language finds the first value at byte 2 × out, with no table and no search.",
    mistakes=(
        Mistake(
            "values before scales", partial(_q8, values_first=True), *SCALES_LAST, "int8 values in the first bytes"
        ),
        Mistake(
            "float32 scales",
            partial(_q8, form="<f4"),
            "Each scale takes four bytes, and the format gives it two.",
            'Convert the scales with `.astype("<f2")` before `tobytes()`.',
            "two bytes too many for each row",
        ),
        Mistake(
            "big-endian scales",
            partial(_q8, form=">f2"),
            "The two bytes of each scale are exchanged.",
            "Convert the scales with `<f2`, with the sign that points left.",
            "`3c 00` where `00 3c` is expected",
        ),
        Mistake(
            "scale rounded too late",
            _q8_rounded_late,
            *ROUNDED_LATE,
            "scales right, and a value here and there off by one",
        ),
        Mistake(
            "one scale a column",
            partial(_q8, axis=0),
            "`axis=0` takes the maximum down each column, and a channel is a row.",
            "Take the maximum along each row, with `axis=1`.",
            "as many scales as the matrix has columns",
        ),
        Mistake(
            "one scale for the whole matrix",
            partial(_q8, axis=None),
            "One maximum over everything gives one scale, and the format holds one for each row.",
            "Take the maximum along each row, with `axis=1`.",
            "a single scale in front of the values",
        ),
        Mistake(
            "scales not lined up with their rows",
            _q8_not_lined_up,
            "Scales of shape (out,) are lined up with the columns when numpy divides, and each belongs to a row.",
            "Keep the second axis: `max(axis=1, keepdims=True)` gives the shape (out, 1).",
            "`operands could not be broadcast together`, or wrong values in a square matrix",
        ),
        Mistake(
            "signed maximum",
            _q8_signed_max,
            "You took the largest weight, and a negative weight that lies farther from zero was not seen.",
            "Take `np.abs(w)` first, then the maximum.",
            "a scale too small, wherever a row's longest weight is negative",
        ),
        Mistake(
            "row by row",
            _q8_by_rows,
            "Each row stands behind its own scale, much as in the blocks of real GGUF, and here all scales come first.",
            "Join all scales, then all values.",
            "the second scale only after the first row",
        ),
        Mistake(
            "divided by 128",
            partial(_q8, over=128),
            "The largest weight must land on 127, the last int8, and with absmax / 128 it would land on 128.",
            "Divide absmax by 127.",
            "every scale a little too small",
        ),
        Mistake(
            "cut instead of rounded",
            _q8_cut,
            "`astype(np.int8)` cuts the fraction off, and 2.9 becomes 2.",
            "Call `np.rint` before you convert to int8.",
            "values one too close to zero, about half of them",
        ),
        Mistake(
            "halves rounded up",
            _q8_half_up,
            "`floor(x + 0.5)` sends every half upwards, and the format rounds halves to the even neighbour.",
            "Use `np.rint`.",
            "3 where 2 is expected for 2.5, all else right",
        ),
        Mistake(
            "shifted by 128",
            partial(_q8, add=128),
            "128 was added to make the values unsigned, and the format stores signed int8.",
            "Convert to `np.int8` and add nothing.",
            "`80` where zeros are expected",
        ),
        Mistake(
            "columns first",
            _q8_columns,
            "The values were written column after column.",
            "Write the matrix as it is, without `.T`.",
            "right for a matrix of one row, wrong for others",
        ),
    ),
)
