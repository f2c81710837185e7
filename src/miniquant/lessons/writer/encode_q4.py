"""The fourth part of a file: the bytes of a matrix in 4 bits."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit, omit
from ..shared.by_hand import integer, stored_scale
from .pack_int4 import pack_int4


def encode_q4(w):
    """The bytes of a matrix as Q4_per_group_64.

    w: (out, in) float32, in a multiple of 64   ->   bytes: out × in / 64 float16 scales (absmax / 7, rounded first),
    then out × in / 2 bytes of values (w / scale, rounded half to even, clipped to -7…7), packed by pack_int4

    Raises ValueError if in is not a multiple of 64.
    """
    out, width = w.shape
    if width % 64:
        raise ValueError(f"rows of {width} weights do not divide into groups of 64")
    groups = w.reshape(out, width // 64, 64)
    scale = (np.abs(groups).max(axis=2, keepdims=True) / np.float32(7)).astype("<f2")  # (out, groups, 1)
    divisor = np.where(scale == 0, 1, scale).astype(np.float32)
    values = np.rint(groups / divisor).clip(-7, 7).astype(np.int8)  # (out, groups, 64)
    return scale.tobytes() + pack_int4(values.reshape(out, width)).tobytes()


def oracle(w):
    """One group at a time, two numbers at a time."""
    scales, values = b"", bytearray()
    for row in w.tolist():
        if len(row) % 64:
            raise ValueError(f"a row of {len(row)} weights leaves a tail of {len(row) % 64} after its groups of 64")
        for start in range(0, len(row), 64):
            group = row[start : start + 64]
            scale = stored_scale(group, 7)
            scales += struct.pack("<e", scale)
            for even, odd in zip(group[0::2], group[1::2]):
                values.append(integer(even, scale, 7) % 16 + integer(odd, scale, 7) % 16 * 16)
    return scales + bytes(values)


def fields(w):
    """The scale of each group, row after row, then the packed values of each group."""
    names = [f"row {i}, group {g}" for i in range(len(w)) for g in range(max(1, w.shape[1] // 64))]
    scales = [(f"the scale of {name}", 2 * i, 2 * i + 2) for i, name in enumerate(names)]
    start = 2 * len(names)
    return scales + [(f"the values of {name}", start + 32 * i, start + 32 * i + 32) for i, name in enumerate(names)]


def cases(random):
    """Groups whose scales are whole numbers, zeros, scales that float16 rounds, widths that must be refused."""
    ramp = np.tile(np.arange(-7, 9), 4).clip(-7, 7)  # a group whose scale is 1
    made = [
        [ramp],
        [ramp, 2 * ramp],
        [np.concatenate([ramp, 4 * ramp]), np.concatenate([2 * ramp, np.zeros(64)])],
        [[7.0028] + [2.5005] * 63],  # the scale 1.0004 becomes 1 in float16, and 2.5005 becomes 3
        [[10 * 2**-24, -10 * 2**-24] + [2**-24] * 62],  # the scale 1.4 × 2**-24 becomes 2**-24, so that 10 is clipped
        [np.concatenate([g * ramp for g in row]) for row in ((1, 2, 3), (4, 5, 6))],
    ]
    bad = [np.ones((1, 32)), np.ones((2, 96))]
    return [(np.array(w, np.float32),) for w in [*made, *bad, random.normal(0, 0.02, (8, 192))]]


EXERCISE = Exercise(
    goal="Quantize a matrix in groups of 64 and lay it out: all float16 scales, then all values, two to a byte.",
    reference=encode_q4, oracle=oracle, cases=cases, minutes=5, difficulty="core", fields=fields,
    hints=(
        "`w.reshape(out, -1, 64)` has the shape (out, groups, 64); from there it is lab 05: absmax / 7 along the last axis, rounded to float16 first, then `np.rint`, `clip(-7, 7)`, int8.",
        "Bring the values back to (out, in) before you call `pack_int4`, put the scales in front, and raise ValueError if `in % 64` is not 0.",
    ),
    why="64 weights in 34 bytes: this layout is where the file's size comes from.",
    mistakes=(
        Mistake("values before scales", edit("return scale.tobytes() + ", "return ").edit(
                "width)).tobytes()", "width)).tobytes() + scale.tobytes()"
            ),
            cause="The scales follow the values, and a reader takes the first bytes for scales.",
            cure="Join the scales first, then the values.", see="packed values in the first bytes"),
        Mistake("float32 scales", edit("scale.tobytes()", 'scale.astype("<f4").tobytes()'),
            cause="Each scale takes four bytes, and the format gives it two.",
            cure='Convert the scales with `.astype("<f2")` before `tobytes()`.',
            see="two bytes too many for each group"),
        Mistake("scale rounded too late",
            edit('.astype("<f2")', "").edit("scale.tobytes()", 'scale.astype("<f2").tobytes()'),
            cause="You divided by the float32 scale and rounded it to float16 only for the file, so the reader multiplies by another number than you divided by.",
            cure="Round the scale to float16 before the division, and divide by the rounded one.",
            see="scales right, and a nibble here and there off by one"),
        Mistake("group order transposed", edit("scale.tobytes()", "scale.swapaxes(0, 1).tobytes()"),
            cause="You wrote the scales of all rows for group 0 first, and a reader expects all groups of row 0 first.",
            cure="Keep the shape (out, groups) and do not transpose it.",
            see="right for one row or one group, wrong for more"),
        Mistake("one scale a row", edit("axis=2", "axis=(1, 2)"),
            cause="The maximum was taken over the whole row, and each group of 64 has its own.",
            cure="Reshape to (out, groups, 64) and take the maximum along the last axis only.", see="too few scales"),
        Mistake("groups with a stride", edit("width // 64, 64", "64, width // 64").edit("axis=2", "axis=1"),
            cause="`reshape(out, 64, groups)` puts every groups-th weight together, and a group is 64 neighbours.",
            cure="Reshape to (out, groups, 64): the 64 comes last.", see="right for rows of 64, wrong for longer rows"),
        Mistake("groups across rows", omit("if width % 64").edit("out, width // 64, 64", "1, -1, 64"),
            cause="When 64 does not divide the width, `reshape(-1, 64)` lets a group run from one row into the next.",
            cure="Refuse such a width with ValueError.", see="a matrix (2, 96) accepted"),
        Mistake("tail dropped",
            omit("if width % 64").edit("out, width =", "w = w[:, : w.shape[1] // 64 * 64]\n    out, width ="),
            cause="The weights after the last whole group were left out without a word.",
            cure="Refuse a width that is no multiple of 64 with ValueError.", see="a matrix (1, 32) accepted"),
        Mistake("block by block", edit(
                "return scale.tobytes() + pack_int4(values.reshape(out, width)).tobytes()",
                'blocks = zip(scale.reshape(-1), values.reshape(-1, 64))\n    return b"".join(one.tobytes() + pack_int4(group).tobytes() for one, group in blocks)',
            ),
            cause="Each group follows its own scale, as in real GGUF, and here all scales come first.",
            cure="Join all scales, then all values.", see="the second scale only after 32 bytes of values"),
        Mistake("divided by 8", edit("np.float32(7)", "np.float32(8)"),
            cause="The largest weight must land on 7; with absmax / 8 it would land on 8, too large for four bits.",
            cure="Divide absmax by 7.", see="every scale too small"),
        Mistake("nibbles swapped",
            edit("values.reshape(out, width)", "values.reshape(out, -1, 2)[..., ::-1].reshape(out, width)"),
            cause="The even index went to the high nibble.",
            cure="Fix `pack_int4`: shift the odd indices, not the even ones.",
            see="scales right, and every byte of the values with its two digits exchanged"),
        Mistake("shifted by eight", edit("values.reshape(out, width)", "values.reshape(out, width) + 8"),
            cause="Adding 8 is how real GGUF's Q4_0 stores a nibble; this format keeps two's complement.",
            cure="Fix `pack_int4`: mask with `& 0x0F` and add nothing.",
            see="scales right, and `0x88` where zeros are packed"),
    ),
)
