"""The fourth part of a file: the bytes of a matrix in 8 bits."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import integer, stored_scale


def encode_q8(w):
    """The bytes of a matrix as Q8_per_channel.

    w: (out, in) float32, not empty, no scale too large for float16
    ->   bytes: out float16 scales, little-endian, one a row: absmax / 127
         in float32, rounded to float16 first; then out × in int8 values,
         row after row: w / rounded scale in float32, rounded half to even,
         clipped to -127…127.
    A scale of 0 (the bytes 00 00), of a row of zeros or of numbers too
    small for float16, gives values 0.
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


def parts(result, w):
    """The scales and the values in the bytes of a matrix."""
    out, width = w.shape
    if len(result) != out * (width + 2):
        return {}
    values = np.frombuffer(result, np.int8, offset=2 * out).reshape(out, width)
    return {"the scales": np.frombuffer(result, "<f2", count=out), "the values": values}


def cases(random):
    """Small matrices, among them zeros, halves, and numbers so small that their scale is rounded far down."""
    tenth, *steps = np.array([0.1, 0.37, 0.83], np.float16).astype(float).tolist()
    small = [
        [[127, 1, -1]],
        [[0, 0, 0], [-0.0, -0.0, -0.0]],
        [[1, 2, 127], [254, -2, 4]],
        [[1, 2], [127, -254], [-63.5, 0]],
        [[0, 0], [127, 64], [0, 0]],
        [[127.05, 2.5005, -3.5005]],  # the scale 1.0004 becomes 1 in float16
        [[190 * 2**-24, 2**-24, -190 * 2**-24, 0]],  # the scale 1.5 × 2**-24 becomes 2**-24, so that 190 is clipped
        [[1e-6, -1e-6], [127, -1], [95 * 2**-24, 0]],  # the first scale becomes 0 in float16, the last one its smallest number
        [[-127, 0.5, 1.5], [-1, 127, -0.5]],
        [[127 * tenth, *((k + 0.5) * tenth for k in range(126))]],  # every tie, with a scale that is no power of two
    ]
    small.append([[127 * s, 3.5 * s, -6.5 * s] for s in steps])  # ties; w * (1 / scale) misses them
    small.append([[127 * 60000, -60000, 30000], [127 * 65504, 65504 * 3, 65504 * 2.5]])  # large scales
    below, above = np.nextafter(np.float32([2.5, 2.5]), np.float32([0, 3])).tolist()
    small.append([[127, below, above, -below, -above, 0.49999997, 127 * 1.00048828125]])
    small.append([[np.nextafter(np.float32(127 * 1.00048828125), np.float32(128)), 5]])  # w * (1 / 127) is another scale
    small.append(np.array([[127, 2, -3, 4], [5, 254, -7, 8]]).astype(np.float32, order="F"))  # column after column
    toy = (np.arange(32).reshape(4, 8) - 16) / 10
    return [(np.array(a, np.float32),) for a in [*small, toy, random.normal(0, 0.02, (8, 96))]]


def traits(w):
    """What is special about a matrix."""
    out, width = w.shape
    largest = np.abs(w).max(1)
    stored = (largest / np.float32(127)).astype(np.float16)
    quotient = w / np.where(stored == 0, 1, stored).astype(np.float32)[:, None]
    return {
        "a row is all zeros": bool((largest == 0).any()),
        "a scale is 0": bool((stored == 0).any()),
        "a row that is not all zeros has a scale of 0": bool(((stored == 0) & (largest > 0)).any()),
        "a scale is less than 0.0001": bool((stored < 1e-4).any()),
        "a weight divided by its scale ends in .5": bool((np.abs(quotient) % 1 == 0.5).any()),
        "a weight divided by its scale, rounded, is beyond 127": bool((np.rint(np.abs(quotient)) > 127).any()),
        "a negative weight is as far from 0 as any in its row": bool(((w.min(1) == -largest) & (largest > 0)).any()),
        "a scale is not the same in float16": bool((stored.astype(np.float32) != largest / np.float32(127)).any()),
        "a scale is larger than 1000": bool((stored > 1000).any()),
        "`w` lies in memory column after column, not row after row": w.flags.f_contiguous and not w.flags.c_contiguous,
        "there is more than one row": out > 1,
        "there are as many rows as columns": out == width,
        "two rows have different scales": len(set(stored.tolist())) > 1,
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Quantize a matrix per channel and lay it out: all float16 scales, then all int8 values, row after row.",
    reference=encode_q8, oracle=oracle, cases=cases, minutes=7, difficulty="core", fields=fields,
    parts=parts,
    hints=(
        "It is the quantizer of lab 06, with one scale for each row. Round the scale to float16 before you divide by it, and take care of a scale that is 0: divide by something else there.",
        'Keep the scales in the shape (out, 1), so that numpy divides each row by its own: `max` has the option `keepdims=True`. `np.where` chooses between two values; `"<f2"` is the dtype of a little-endian float16; `tobytes` gives the bytes of an array.',
    ),
    why="a reader in any language computes where the first value begins: at byte 2 × out.",
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
            cure="Convert the scales with `<f2`.",
            see="`3c 00` where `00 3c` is expected"),
        Mistake("scale rounded too late",
            edit('.astype("<f2")', "").edit("scale.tobytes()", 'scale.astype("<f2").tobytes()'),
            cause="The values are those that the float32 scale gives, and the stored scale is rounded. This format rounds first, so some integers differ.",
            cure="Round the scale to float16 first, and divide by the rounded one.",
            see="scales right, and a value here and there off by one"),
        Mistake("one scale a column", edit("axis=1", "axis=0"),
            cause="The scales are those of the columns, and a channel is a row.",
            cure="Take the maximum along each row, with `axis=1`.", see="as many scales as the matrix has columns"),
        Mistake("one scale for the whole matrix", edit("max(axis=1, keepdims=True)", "max()"),
            cause="One maximum over everything gives one scale, and the format holds one for each row.",
            cure="Take the maximum along each row, with `axis=1`.", see="a single scale before the values"),
        Mistake("scales not lined up with their rows", edit(", keepdims=True", ""),
            cause="The scales are lined up with the columns when numpy divides, and each belongs to a row.",
            cure="Keep the second axis: `max(axis=1, keepdims=True)` gives the shape (out, 1).",
            see="`operands could not be broadcast together`, or wrong values in a square matrix"),
        Mistake("signed maximum", edit("np.abs(w).max", "w.max"),
            cause="The scales come from the largest weight, and a negative weight may be farther from zero.",
            cure="Take `np.abs(w)` first, then the maximum.",
            see="a scale too small, wherever a row's largest absolute weight is negative"),
        Mistake("row by row", edit(
                "scale.tobytes() + values.tobytes()",
                'b"".join(one.tobytes() + row.tobytes() for one, row in zip(scale, values))',
            ),
            cause="Each row follows its own scale, much as in the blocks of real GGUF, and here all scales come first.",
            cure="Join all scales, then all values.", see="the second scale only after the first row"),
        Mistake("divided by 128", edit("np.float32(127)", "np.float32(128)"),
            cause="The scale is absmax / 128, and it must be absmax / 127: 127 is the last number of int8.",
            cure="Divide absmax by 127.", see="every scale a little too small"),
        Mistake("cut instead of rounded", edit("np.rint", ""),
            cause="The fraction of each quotient is cut off, so 2.9 becomes 2.",
            cure="Call `np.rint` before you convert to int8.", see="values one too close to zero, about half of them"),
        Mistake("halves rounded up", edit("np.rint(w / divisor)", "np.floor(w / divisor + 0.5)"),
            cause="Every half is rounded upwards, and the format rounds halves to the even neighbour.",
            cure="Use `np.rint`.", see="3 where 2 is expected for 2.5, all else right"),
        Mistake("divided by a scale of 0", edit("np.where(scale == 0, 1, scale)", "scale"),
            cause="Where a scale is 0, the values must be 0. These are as after a division by 0 or by a tiny number.",
            cure="Divide by 1 where the scale is 0.",
            see="numpy warns of a division by zero, and `7f` or `81` where zeros are expected"),
        Mistake("multiplied by 1 / scale", edit("w / divisor", "w * (1 / divisor)"),
            cause="Your values are those of `w * (1 / scale)`: that rounds twice, so some ties move.",
            cure="Divide by the scale.", see="a value here and there off by one, where the quotient ends in .5"),
        Mistake("shifted by 128",
            edit("values.tobytes()", "(values.astype(np.int16) + 128).astype(np.uint8).tobytes()"),
            cause="Every value is 128 too large, as if it were unsigned, and the format stores signed int8.",
            cure="Convert to `np.int8` and add nothing.", see="`80` where zeros are expected"),
        Mistake("not clipped", edit(".clip(-127, 127)", ""),
            cause="When a tiny scale is rounded down, a quotient may be rounded to a number beyond ±127, which does not fit, and it was not clipped.",
            cure='Clip to -127…127 before you convert to int8.', see='a value with the wrong sign in a row of very small weights'),
        Mistake("clipped at -128", edit("-127, 127", "-128, 127"),
            cause="The writer of this format uses -127 to 127, the same on both sides.",
            cure='Clip to -127…127.', see='`80` where `81` is expected'),
        Mistake("scale 1 for zeros", edit("divisor = np.where(scale == 0, 1, scale).astype(np.float32)", "scale = divisor = np.where(scale == 0, np.float16(1), scale)"),
            cause='Where the scale is 0 your bytes hold 1. Only the divisor may be 1; the file holds the scale 0.',
            cure='Keep the scale, and use another array to divide by.', see='`00 3c` where `00 00` is expected'),
        Mistake("range instead of absmax", edit("np.abs(w).max(axis=1, keepdims=True) / np.float32(127)", "(w.max(axis=1, keepdims=True) - w.min(axis=1, keepdims=True)) / np.float32(255)"),
            cause='Each scale is the whole range divided by 255, as for integers without a sign.',
            cure='Take the largest absolute value, divided by 127.', see='scales that are wrong unless a row is symmetric'),
        Mistake("multiplied by the scale", edit("w / divisor", "w * divisor"),
            cause='Quantizing divides by the scale; dequantizing multiplies.',
            cure='Divide by the scale.', see='values that are too small wherever the scale is not 1'),
        Mistake("divided in float16", edit("w / divisor", "w.astype(np.float16) / divisor.astype(np.float16)"),
            cause='The values are those that a division in float16 gives, which moves some of them.',
            cure='Divide float32 weights.', see='a value here and there off by one'),
        Mistake("halves rounded away from zero", edit("np.rint(w / divisor)", "(np.sign(w) * np.floor(np.abs(w) / divisor + 0.5))"),
            cause='A half was rounded away from zero, and the format rounds halves to the even neighbour.',
            cure='Use `np.rint`.', see='3 where 2 is expected for 2.5, and -3 for -2.5'),
        Mistake("values left as floats", edit(".clip(-127, 127).astype(np.int8)", ".clip(-127, 127)"),
            cause='The values are float32, four bytes each.',
            cure='Convert them with `.astype(np.int8)`.', see='four bytes for each value'),
        Mistake("columns first", edit("values.tobytes()", "values.T.tobytes()"),
            cause="The values stand column after column.",
            cure="Write the matrix as it is, without `.T`.", see="right for a matrix of one row, wrong for others"),
    ),
)
