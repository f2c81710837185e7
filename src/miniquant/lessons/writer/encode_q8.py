"""The fourth part of a file: the bytes of a matrix in 8 bits."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import integer, stored_scale


def encode_q8(w):
    """The bytes of a matrix as Q8_per_channel.

    w: (out, in) float32   ->   bytes: out float16 scales (absmax / 127, rounded first), then out × in int8 values
    (w / scale, rounded half to even, clipped to -127…127); a row of zeros has scale 0 and values 0
    """
    scale = (np.abs(w).max(axis=1, keepdims=True) / np.float32(127)).astype("<f2")  # (out, 1), rounded here
    divisor = np.where(scale == 0, 1, scale).astype(np.float32)
    values = np.rint(w / divisor).clip(-127, 127).astype(np.int8)  # (out, in)
    return scale.tobytes() + values.tobytes()


def oracle(w):
    """One row at a time, one number at a time."""
    scales, values = b"", b""
    for row in w.tolist():
        scale = stored_scale(row, 127)
        scales += struct.pack("<e", scale)
        values += struct.pack(f"<{len(row)}b", *(integer(x, scale, 127) for x in row))
    return scales + values


def fields(w):
    """The scale of each row, then each row."""
    out, width = w.shape
    scales = [(f"the scale of row {i}", 2 * i, 2 * i + 2) for i in range(out)]
    return scales + [(f"the values of row {i}", 2 * out + i * width, 2 * out + (i + 1) * width) for i in range(out)]


def cases(random):
    """Small matrices, among them zeros, halves, and numbers so small that their scale is rounded far down."""
    small = [
        [[127, 1, -1]],
        [[127, 2.5, -2.5, 0.5]],
        [[1, 2, 127], [254, -2, 4]],
        [[1, 2], [127, -254], [-63.5, 0]],
        [[0, 0], [127, 64]],
        [[127.05, 2.5005, -3.5005]],  # the scale 1.0004 becomes 1 in float16
        [[190 * 2**-24, 2**-24, -190 * 2**-24, 0]],  # the scale 1.5 × 2**-24 becomes 2**-24, so that 190 is clipped
    ]
    toy = (np.arange(32).reshape(4, 8) - 16) / 10
    return [(np.array(a, np.float32),) for a in [*small, toy, random.normal(0, 0.02, (8, 96))]]


EXERCISE = Exercise(
    goal="Quantize a matrix per channel and lay it out: all float16 scales, then all int8 values, row after row.",
    reference=encode_q8, oracle=oracle, cases=cases, minutes=5, difficulty="core", fields=fields,
    hints=(
        "`np.abs(w).max(axis=1, keepdims=True) / 127` is a scale for each row; round it with `.astype(np.float16)` before anything is divided by it. A row of zeros has scale 0, so divide by 1 there.",
        '`np.rint(w / scale).clip(-127, 127).astype(np.int8)` are the values; `scale.astype("<f2").tobytes()` and `values.tobytes()` are the two parts.',
    ),
    why="a reader in any language finds the first value at byte 2 × out, with no table and no search.",
    mistakes=(
        Mistake("values before scales",
            edit("scale.tobytes() + values.tobytes()", "values.tobytes() + scale.tobytes()"),
            cause="The scales follow the values, and a reader takes the first bytes for scales.",
            cure="Join the scales first, then the values.", see="int8 values in the first bytes"),
        Mistake("float32 scales", edit("scale.tobytes()", 'scale.astype("<f4").tobytes()'),
            cause="Each scale takes four bytes, and the format gives it two.",
            cure='Convert the scales with `.astype("<f2")` before `tobytes()`.', see="two bytes too many for each row"),
        Mistake("big-endian scales", edit("<f2", ">f2"),
            cause="The two bytes of each scale are exchanged.",
            cure="Convert the scales with `<f2`, with the sign that points left.",
            see="`3c 00` where `00 3c` is expected"),
        Mistake("scale rounded too late",
            edit('.astype("<f2")', "").edit("scale.tobytes()", 'scale.astype("<f2").tobytes()'),
            cause="You divided by the float32 scale and rounded it to float16 only for the file, so the reader multiplies by another number than you divided by.",
            cure="Round the scale to float16 before the division, and divide by the rounded one.",
            see="scales right, and a value here and there off by one"),
        Mistake("one scale a column", edit("axis=1", "axis=0"),
            cause="`axis=0` takes the maximum down each column, and a channel is a row.",
            cure="Take the maximum along each row, with `axis=1`.", see="as many scales as the matrix has columns"),
        Mistake("one scale for the whole matrix", edit("max(axis=1, keepdims=True)", "max()"),
            cause="One maximum over everything gives one scale, and the format holds one for each row.",
            cure="Take the maximum along each row, with `axis=1`.", see="a single scale in front of the values"),
        Mistake("scales not lined up with their rows", edit(", keepdims=True", ""),
            cause="Scales of shape (out,) are lined up with the columns when numpy divides, and each belongs to a row.",
            cure="Keep the second axis: `max(axis=1, keepdims=True)` gives the shape (out, 1).",
            see="`operands could not be broadcast together`, or wrong values in a square matrix"),
        Mistake("signed maximum", edit("np.abs(w).max", "w.max"),
            cause="You took the largest weight, and a negative weight that lies farther from zero was not seen.",
            cure="Take `np.abs(w)` first, then the maximum.",
            see="a scale too small, wherever a row's longest weight is negative"),
        Mistake("row by row", edit(
                "scale.tobytes() + values.tobytes()",
                'b"".join(one.tobytes() + row.tobytes() for one, row in zip(scale, values))',
            ),
            cause="Each row follows its own scale, much as in the blocks of real GGUF, and here all scales come first.",
            cure="Join all scales, then all values.", see="the second scale only after the first row"),
        Mistake("divided by 128", edit("np.float32(127)", "np.float32(128)"),
            cause="The largest weight must land on 127, the last int8, and with absmax / 128 it would land on 128.",
            cure="Divide absmax by 127.", see="every scale a little too small"),
        Mistake("cut instead of rounded", edit("np.rint", ""),
            cause="`astype(np.int8)` cuts the fraction off, and 2.9 becomes 2.",
            cure="Call `np.rint` before you convert to int8.", see="values one too close to zero, about half of them"),
        Mistake("halves rounded up", edit("np.rint(w / divisor)", "np.floor(w / divisor + 0.5)"),
            cause="`floor(x + 0.5)` sends every half upwards, and the format rounds halves to the even neighbour.",
            cure="Use `np.rint`.", see="3 where 2 is expected for 2.5, all else right"),
        Mistake("shifted by 128",
            edit("values.tobytes()", "(values.astype(np.int16) + 128).astype(np.uint8).tobytes()"),
            cause="128 was added to make the values unsigned, and the format stores signed int8.",
            cure="Convert to `np.int8` and add nothing.", see="`80` where zeros are expected"),
        Mistake("columns first", edit("values.tobytes()", "values.T.tobytes()"),
            cause="The values were written column after column.",
            cure="Write the matrix as it is, without `.T`.", see="right for a matrix of one row, wrong for others"),
    ),
)
