"""The exercise of lab 06 on the bytes of one Q4 tensor."""

from __future__ import annotations

import struct
from functools import partial

import numpy as np

from ...formats.gguf_lite import file as gguf_io
from ...lab.compare import Fields
from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import integer, stored_scale
from ..shared.gguf_lite_by_hand import pack_oracle
from ..shared.steps import divided, rounded, to_int8
from .nibbles import shifted_by_eight, swapped
from .q8 import ROUNDED_LATE, SCALES_LAST

F32 = np.float32

# ---- encode_q4 -------------------------------------------------------------------------------------------------------


def encode_q4(w: np.ndarray) -> bytes:
    """The reference: w (out, in) float32, in a multiple of 64 -> out × in / 64 float16 scales, then the nibbles."""
    if w.shape[1] % 64:
        raise ValueError(f"rows of {w.shape[1]} weights do not divide into groups of 64")
    return b"".join(gguf_io.encode_tensor(w, gguf_io.DType.Q4_PER_GROUP_64))


def q4_oracle(w: np.ndarray) -> bytes:
    """One group at a time, two numbers at a time."""
    scales, values = b"", bytearray()
    for row in w.tolist():
        if len(row) % 64:
            raise ValueError(f"a row of {len(row)} weights leaves a tail of {len(row) % 64} behind its groups of 64")
        for start in range(0, len(row), 64):
            group = row[start : start + 64]
            scale = stored_scale(group, 7)
            scales += struct.pack("<e", scale)
            for even, odd in zip(group[0::2], group[1::2]):
                values.append(integer(even, scale, 7) % 16 + integer(odd, scale, 7) % 16 * 16)
    return scales + bytes(values)


def q4_fields(w: np.ndarray) -> Fields:
    """The scale of each group, row after row, then the packed values of each group."""
    out, groups = len(w), max(1, w.shape[1] // 64)
    names = [f"row {i}, group {g}" for i in range(out) for g in range(groups)]
    fields = [(f"the scale of {name}", 2 * i, 2 * i + 2) for i, name in enumerate(names)]
    start = 2 * len(names)
    return fields + [(f"the values of {name}", start + 32 * i, start + 32 * i + 32) for i, name in enumerate(names)]


def _q4_cases(random: np.random.Generator) -> list[Case]:
    ramp = np.tile(np.arange(-7, 9), 4).clip(-7, 7)  # a group whose scale is 1
    made = [
        [ramp],
        [ramp, 2 * ramp],
        [np.concatenate([ramp, 4 * ramp]), np.concatenate([2 * ramp, np.zeros(64)])],
        [[7.0028] + [2.5005] * 63],  # the scale 1.0004 becomes 1 in float16, and 2.5005 becomes 3
        [np.concatenate([g * ramp for g in row]) for row in ((1, 2, 3), (4, 5, 6))],
    ]
    drawn = random.normal(0, 0.02, (8, 192))
    bad = [np.ones((1, 32)), np.ones((2, 96))]
    return [(np.array(w, F32),) for w in [*made, *bad, drawn]]


def _grouped(w: np.ndarray) -> np.ndarray:
    if w.shape[1] % 64:
        raise ValueError("refused")
    return w.reshape(len(w), -1, 64)  # (out, groups, 64)


def _q4_parts(groups: np.ndarray, over: float = 7, axis=2, late=False) -> tuple[np.ndarray, np.ndarray]:
    exact = np.abs(groups).max(axis=axis, keepdims=True) / F32(over)
    return rounded(exact).astype("<f2"), to_int8(divided(groups, exact if late else rounded(exact)), 7)


def _q4(w: np.ndarray, form: str = "<f2", values_first=False, pack=pack_oracle, transposed=False, **how) -> bytes:
    scale, values = _q4_parts(_grouped(w), **how)
    scale = scale.swapaxes(0, 1) if transposed else scale
    parts = [scale.astype(form).tobytes(), pack(values.reshape(w.shape)).tobytes()]
    return b"".join(reversed(parts) if values_first else parts)


def _q4_blocks(w: np.ndarray) -> bytes:
    scale, values = _q4_parts(_grouped(w))
    blocks = zip(scale.reshape(-1, 1), pack_oracle(values.reshape(-1, 64)))
    return b"".join(one.tobytes() + group.tobytes() for one, group in blocks)


def _q4_strided(w: np.ndarray) -> bytes:
    _grouped(w)
    scale, values = _q4_parts(w.reshape(len(w), 64, -1), axis=1)
    return scale.tobytes() + pack_oracle(values.reshape(w.shape)).tobytes()


def _q4_across_rows(w: np.ndarray) -> bytes:
    scale, values = _q4_parts(w.reshape(1, -1, 64))
    return scale.tobytes() + pack_oracle(values.reshape(w.shape)).tobytes()


def _q4_tail_dropped(w: np.ndarray) -> bytes:
    return _q4(w[:, : w.shape[1] // 64 * 64])


ENCODE_Q4 = Exercise(
    name="encode_q4",
    lab="06",
    goal="Quantize a matrix in groups of 64 and lay it out: all float16 scales, then all values, two to a byte.",
    minutes=5,
    difficulty="core",
    reference=encode_q4,
    oracle=q4_oracle,
    cases=_q4_cases,
    fields=q4_fields,
    hints=(
        "`w.reshape(out, -1, 64)` has the shape (out, groups, 64); from there it is lab 05: absmax / 7 along the last "
        "axis, rounded to float16 first, then `np.rint`, `clip(-7, 7)`, int8.",
        "Bring the values back to (out, in) before you call `pack_int4`, put the scales in front, and raise ValueError "
        "if `in % 64` is not 0.",
    ),
    why="64 weights in 34 bytes: this layout is where the file's size comes from.",
    mistakes=(
        Mistake(
            "values before scales", partial(_q4, values_first=True), *SCALES_LAST, "packed values in the first bytes"
        ),
        Mistake(
            "float32 scales",
            partial(_q4, form="<f4"),
            "Each scale takes four bytes, and the format gives it two.",
            'Convert the scales with `.astype("<f2")` before `tobytes()`.',
            "two bytes too many for each group",
        ),
        Mistake(
            "scale rounded too late",
            partial(_q4, late=True),
            *ROUNDED_LATE,
            "scales right, and a nibble here and there off by one",
        ),
        Mistake(
            "group order transposed",
            partial(_q4, transposed=True),
            "The scales were written group by group, all rows of group 0 first, and a reader expects all groups of row "
            "0 first.",
            "Keep the shape (out, groups) and do not transpose it.",
            "right for one row or one group, wrong for more",
        ),
        Mistake(
            "one scale a row",
            partial(_q4, axis=(1, 2)),
            "The maximum was taken over the whole row, and each group of 64 has its own.",
            "Reshape to (out, groups, 64) and take the maximum along the last axis only.",
            "too few scales",
        ),
        Mistake(
            "groups with a stride",
            _q4_strided,
            "`reshape(out, 64, groups)` puts every groups-th weight together, and a group is 64 neighbours.",
            "Reshape to (out, groups, 64): the 64 comes last.",
            "right for rows of 64, wrong for longer rows",
        ),
        Mistake(
            "groups across rows",
            _q4_across_rows,
            "`reshape(-1, 64)` lets a group begin in one row and end in the next when the width is no multiple of 64.",
            "Refuse such a width with ValueError.",
            "a matrix (2, 96) accepted",
        ),
        Mistake(
            "tail dropped",
            _q4_tail_dropped,
            "The weights behind the last whole group were left out without a word.",
            "Refuse a width that is no multiple of 64 with ValueError.",
            "a matrix (1, 32) accepted",
        ),
        Mistake(
            "block by block",
            _q4_blocks,
            "Each group stands behind its own scale, as in real GGUF, and here all scales come first.",
            "Join all scales, then all values.",
            "the second scale only after 32 bytes of values",
        ),
        Mistake(
            "divided by 8",
            partial(_q4, over=8),
            "The largest weight must land on 7, and with absmax / 8 it would land on 8, which four bits do not hold.",
            "Divide absmax by 7.",
            "every scale too small",
        ),
        Mistake(
            "nibbles swapped",
            partial(_q4, pack=swapped),
            "The even index went to the high nibble.",
            "Mend `pack_int4`: shift the odd indices, not the even ones.",
            "scales right, and every byte of the values with its two digits exchanged",
        ),
        Mistake(
            "shifted by eight",
            partial(_q4, pack=shifted_by_eight),
            "Adding 8 is how real GGUF's Q4_0 stores a nibble; this format keeps two's complement.",
            "Mend `pack_int4`: mask with `& 0x0F` and add nothing.",
            "scales right, and `0x88` where zeros are packed",
        ),
    ),
)
