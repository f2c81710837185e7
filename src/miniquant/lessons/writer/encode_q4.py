"""The fourth part of a file: the bytes of a matrix in 4 bits."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit, omit
from ..shared.by_hand import integer, stored_scale
from .pack_int4 import pack_int4


def encode_q4(w):
    """The bytes of a matrix as Q4_per_group_64.

    w: (out, in) float32, not empty, no scale too large for float16
    ->   bytes: out × in / 64 float16 scales, little-endian, all groups of
         row 0 first: absmax of the group / 7 in float32, rounded to
         float16 first; then out × in / 2 bytes, row after row: the values
         as ``pack_int4`` packs them, w / rounded scale in float32, rounded
         half to even, clipped to -7…7.
    A scale of 0 (the bytes 00 00), of a group of zeros or of numbers too
    small for float16, gives values 0.

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


def parts(result, w):
    """The scales and the values in the bytes of a matrix."""
    out, width = w.shape
    groups = out * width // 64
    if len(result) != groups * 34:
        return {}
    nibbles = np.array([nibble for byte in result[2 * groups :] for nibble in (byte % 16, byte // 16)])
    values = np.where(nibbles > 7, nibbles - 16, nibbles).reshape(out, width)
    return {"the scales": np.frombuffer(result, "<f2", count=groups), "the values": values}


def cases(random):
    """Groups whose scales are whole numbers, zeros, scales that float16 rounds, widths that must be refused."""
    tenth, *steps = np.array([0.1, 0.37, 0.83], np.float16).astype(float).tolist()
    ramp = np.tile(np.arange(-7, 9), 4).clip(-7, 7)  # a group whose scale is 1
    made = [
        [ramp],
        [np.zeros(64), -np.zeros(64)],
        [np.concatenate([4 * ramp, np.zeros(64)]), np.concatenate([np.zeros(64), 2 * ramp])],
        [[*[0.5, -1.5, 2.5] * 21, 7], [-14, *[0.5, -1.5, 2.5] * 21]],  # the farthest weight is the last one, or the first
        [[7.0028] + [2.5005] * 63],  # the scale 1.0004 becomes 1 in float16, and 2.5005 becomes 3
        [[10 * 2**-24, -10 * 2**-24] + [2**-24] * 62],  # the scale 1.4 × 2**-24 becomes 2**-24, so that 10 is clipped
        [np.concatenate([g * ramp for g in row]) for row in ((1, 2, 3), (4, 5, 6))],
        [[7, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, -3.5] * 8],
        [[2e-7, -2e-7] * 32, [7, -1] * 32],  # the first scale becomes 0 in float16
        [[7 * tenth, *((k + 0.5) * tenth for k in range(-7, 7)), 0] * 4],
        [[7 * s, 3.5 * s, -6.5 * s, 1.5 * s] * 16 for s in steps],  # ties; w * (1 / scale) misses them
        [60000 * ramp, np.concatenate([[7 * 65504], ramp[1:]])],  # large scales
        [[7, *np.nextafter(np.float32([2.5, 1.5, -0.5, 0.5]), np.float32([3, 1, -1, 0])), 0, 0, 0] * 8],
        [np.full(64, 7 * (1 + (k + 0.5) / 1024)) for k in range(690, 710)],  # w * (1 / 7) gives other scales
        np.stack([np.concatenate([ramp, 3 * ramp]), np.concatenate([2 * ramp, 5 * ramp])]).astype(np.float32, order="F"),  # column after column
    ]
    bad = [np.ones((2, 32)), np.ones((2, 96)), np.ones((3, 130))]
    return [(np.array(w, np.float32),) for w in [*made, *bad, random.normal(0, 0.02, (8, 192))]]


def traits(w):
    """What is wrong with a matrix, or special about it."""
    out, width = w.shape
    good = width % 64 == 0
    largest = np.abs(w.reshape(-1, 64)).max(1) if good else np.zeros(0)
    stored = (largest / np.float32(7)).astype(np.float16)
    return {
        "the width is no multiple of 64": not good,
        "the width is less than 64": width < 64,
        "the width is more than 64 and no multiple of it": width > 64 and not good,
        "the number of values is a multiple of 64, and the width is not": not good and w.size % 64 == 0,
        "neither the width nor the number of values is a multiple of 64": w.size % 64 != 0,
        "`w` lies in memory column after column, not row after row": w.flags.f_contiguous and not w.flags.c_contiguous,
        **{
            f"the width is a multiple of 64, and {words}": good and bool(holds)
            for words, holds in {
                "there is one group in all": w.size == 64,
                "there is more than one row": out > 1,
                "there is more than one group in a row": width > 64,
                "there is more than one group": w.size > 64,
                "a group is all zeros": (largest == 0).any(),
                "a scale is larger than 1000": (stored > 1000).any(),
                "a scale is 0": (stored == 0).any(),
                "a group that is not all zeros has a scale of 0": ((stored == 0) & (largest > 0)).any(),
                "a scale is not the same in float16": (stored.astype(np.float32) != largest / np.float32(7)).any(),
            }.items()
        },
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Quantize a matrix in groups of 64 and lay it out: all float16 scales, then all values, two to a byte.",
    reference=encode_q4, oracle=oracle, cases=cases, minutes=6, difficulty="core", fields=fields,
    parts=parts,
    hints=(
        "It is your `encode_q8` with groups in place of rows: give the array a third axis of 64 neighbours, and take the maximum along that axis.",
        "`reshape` makes (out, groups, 64) of (out, in), and (out, in) again for `pack_int4`. The remainder `%` says whether a width divides into groups.",
    ),
    why="64 weights in 34 bytes: this is what makes the file small.",
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
            cause="The values are those that the float32 scale gives, and the stored scale is rounded. This format rounds first, so some integers differ.",
            cure="Round the scale to float16 first, and divide by the rounded one.",
            see="scales right, and a nibble here and there off by one"),
        Mistake("group order transposed", edit("scale.tobytes()", "scale.swapaxes(0, 1).tobytes()"),
            cause="The scales of all rows for group 0 come first, and a reader expects all groups of row 0 first.",
            cure="Keep the shape (out, groups) and do not transpose it.",
            see="right for one row or one group, wrong for more"),
        Mistake("one scale a row", edit("axis=2", "axis=(1, 2)"),
            cause="There is one scale for a whole row, and each group of 64 has its own.",
            cure="Reshape to (out, groups, 64) and take the maximum along the last axis only.", see="too few scales"),
        Mistake("groups with a stride", edit("width // 64, 64", "64, width // 64").edit("axis=2", "axis=1"),
            cause="A group was made of weights that are not neighbours, as `reshape(out, 64, groups)` does.",
            cure="Reshape to (out, groups, 64): the 64 comes last.", see="right for rows of 64, wrong for longer rows"),
        Mistake("groups across rows", omit("if width % 64").edit("out, width // 64, 64", "1, -1, 64"),
            cause="A width that 64 does not divide was accepted, so a group runs from one row into the next.",
            cure="Refuse such a width with ValueError.", see="a matrix (2, 96) accepted"),
        Mistake("tail dropped",
            omit("if width % 64").edit("out, width =", "w = w[:, : w.shape[1] // 64 * 64]\n    out, width ="),
            cause="The weights after the last whole group were left out silently.",
            cure="Refuse a width that is no multiple of 64 with ValueError.", see="a matrix (1, 32) accepted"),
        Mistake("block by block", edit(
                "return scale.tobytes() + pack_int4(values.reshape(out, width)).tobytes()",
                'blocks = zip(scale.reshape(-1), values.reshape(-1, 64))\n    return b"".join(one.tobytes() + pack_int4(group).tobytes() for one, group in blocks)',
            ),
            cause="Each group follows its own scale, as in real GGUF's Q4_0, and here all scales come first.",
            cure="Join all scales, then all values.", see="the second scale only after 32 bytes of values"),
        Mistake("not clipped", edit(".clip(-7, 7)", ""),
            cause="When a tiny scale is rounded down, a quotient may be rounded to a number beyond ±7, and it was not clipped.",
            cure='Clip to -7…7.', see='a nibble with the wrong sign in a group of very small weights'),
        Mistake("clipped at -8", edit("-7, 7", "-8, 7"),
            cause='The writer of this format uses -7 to 7, the same on both sides.',
            cure='Clip to -7…7.', see='`8` where `9` is expected'),
        Mistake("not packed", edit("pack_int4(values.reshape(out, width))", "values.reshape(out, width)"),
            cause='Each value takes a whole byte, and the format has two in a byte.',
            cure='Call `pack_int4`.', see='twice as many bytes of values'),
        Mistake("divided by 15", edit("np.float32(7)", "np.float32(15)"),
            cause='15 is the largest number of four bits without a sign; here the largest is 7.',
            cure='Divide absmax by 7.', see='every scale too small'),
        Mistake("groups of 32", edit("width // 64, 64)", "width // 32, 32)"),
            cause="Groups have 64 weights here; 32 is the block of real GGUF's Q4_0.",
            cure='Reshape to (out, groups, 64).', see='twice as many scales'),
        Mistake("signed maximum", edit("np.abs(groups).max", "groups.max"),
            cause='The scales come from the largest weight, and a negative weight may be farther from zero.',
            cure='Take `np.abs(groups)` first, then the maximum.', see='a scale too small where the largest absolute weight is negative'),
        Mistake("scales missing", edit("return scale.tobytes() + ", "return "),
            cause='The values came without their scales, and a reader cannot dequantize them.',
            cure='Join the scales and the values.', see='two bytes too few for each group'),
        Mistake("divided by 8", edit("np.float32(7)", "np.float32(8)"),
            cause="The scale is absmax / 8, and it must be absmax / 7: 7 is the largest number of four bits with a sign.",
            cure="Divide absmax by 7.", see="every scale too small"),
        Mistake("divided by a scale of 0", edit("np.where(scale == 0, 1, scale)", "scale"),
            cause="Where a scale is 0, the values must be 0. These are as after a division by 0 or by a tiny number.",
            cure="Divide by 1 where the scale is 0.",
            see="numpy warns of a division by zero, and values other than 0 where zeros are expected"),
        Mistake("cut instead of rounded", edit("np.rint", ""),
            cause="The fraction of each quotient is cut off, so 2.9 becomes 2.",
            cure="Call `np.rint` before you convert to int8.", see="values one too close to zero, about half of them"),
        Mistake("multiplied by 1 / scale", edit("groups / divisor", "groups * (1 / divisor)"),
            cause="Your values are those of `w * (1 / scale)`: that rounds twice, so some ties move.",
            cure="Divide by the scale.", see="a value here and there off by one, where the quotient ends in .5"),
        Mistake("halves rounded up", edit("np.rint(groups / divisor)", "np.floor(groups / divisor + 0.5)"),
            cause="Every half is rounded up, and the format rounds halves to the even neighbour.",
            cure="Use `np.rint`.", see="3 where 2 is expected for 2.5, all else right"),
        Mistake("nibbles swapped",
            edit("values.reshape(out, width)", "values.reshape(out, -1, 2)[..., ::-1].reshape(out, width)"),
            cause="The even index is in the high nibble.",
            cure="Fix `pack_int4`: shift the odd indices, not the even ones.",
            see="scales right, and every byte of the values with its two digits exchanged"),
        Mistake("shifted by eight", edit("values.reshape(out, width)", "values.reshape(out, width) + 8"),
            cause="Each nibble is the value + 8, as in real GGUF's Q4_0; this format keeps two's complement.",
            cure="Fix `pack_int4`: mask with `& 0x0F` and add nothing.",
            see="scales right, and `0x88` where zeros are packed"),
        Mistake("the smallest float16 for a scale of 0", edit("np.where(scale == 0, 1, scale)", "np.maximum(scale, np.float16(2**-24))"),
            cause="A group too small for a float16 scale may have values other than 0, as if it were divided by the smallest positive float16.",
            cure='Divide by 1 or by infinity where the scale is 0.', see='values of 3 in a group whose scale is 0'),
    ),
)
