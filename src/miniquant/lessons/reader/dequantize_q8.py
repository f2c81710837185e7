"""The bytes of a tensor with a scale for each channel."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, body, edit


def dequantize_q8(raw, dims):
    """The weights of a Q8_per_channel tensor.

    raw: bytes, out float16 scales, then out × in int8 values; dims: (out, in)   ->   (out, in) float32, values × scale
    """
    out, width = dims
    scale = np.frombuffer(raw, "<f2", count=out).astype(np.float32)
    values = np.frombuffer(raw, np.int8, count=out * width, offset=2 * out).reshape(out, width)
    return values * scale[:, None]


def oracle(raw, dims):
    """One number at a time; q × scale is exact in float32."""
    out, width = dims
    rows = []
    for i in range(out):
        (scale,) = struct.unpack("<e", raw[2 * i : 2 * i + 2])
        start = 2 * out + i * width
        rows.append([(byte - 256 if byte > 127 else byte) * scale for byte in raw[start : start + width]])
    return np.array(rows, np.float32)


def _q8_bytes(scales, values):
    return struct.pack(f"<{len(scales)}e", *scales) + b"".join(struct.pack(f"<{len(row)}b", *row) for row in values)


def cases(random):
    """Small matrices, one with a scale of 0, then a random one."""
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


EXERCISE = Exercise(
    goal="Turn the bytes of a Q8 tensor into a float32 matrix: each row times its own scale.",
    reference=dequantize_q8, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        '`np.frombuffer(raw, "<f2", count=out)` reads the scales; the values begin at byte 2 × out and are `np.int8`.',
        "Reshape the values to (out, in), convert the scales to float32, and give them the shape (out, 1) with `scale[:, None]`, so that each row meets its own.",
    ),
    why="one multiplication a weight is all that stands between the file and the model.",
    mistakes=(
        Mistake("values read from byte 0", edit("offset=2 * out", "offset=0"),
            cause="The scales stand in front, and you took their bytes for values.",
            cure="Let the values begin at byte 2 × out.", see="large odd numbers at the start, and everything shifted"),
        Mistake("scales read from the end",
            edit("count=out)", "count=out, offset=out * width)").edit("offset=2 * out", "offset=0"),
            cause="The scales come first in this format, and you looked for them behind the values.",
            cure="Read the scales from byte 0 and the values from byte 2 × out.", see="values and scales both wrong"),
        Mistake("values unsigned", edit("np.int8", "np.uint8"),
            cause="The values were read as uint8, so -1 became 255.",
            cure="Read them as `np.int8`.", see="positive values right, negative ones large and positive"),
        Mistake("one scale a column", edit("scale[:, None]", "scale"),
            cause="Without a second axis numpy lines the scales up with the columns, and a channel is a row.",
            cure="Give the scales the shape (out, 1): `scale[:, None]`.",
            see="an error about shapes, or wrong numbers in a square matrix"),
        Mistake("left in float16", edit(".astype(np.float32)", ""),
            cause="int8 times float16 is float16 in numpy, and the reader promises float32.",
            cure="Convert the scales to float32 before you multiply.", see="a result of dtype float16"),
        Mistake("multiplied in float16", edit(".astype(np.float32)", "").edit(
                "return values * scale[:, None]", "return (values * scale[:, None]).astype(np.float32)"
            ),
            cause="The product was computed in float16, which keeps 11 bits, and q × scale needs up to 19.",
            cure="Convert the scales to float32 before you multiply.", see="almost right, and off in the fourth digit"),
        Mistake("row by row", body("""
                rows = np.frombuffer(raw, np.uint8).reshape(dims[0], 2 + dims[1])
                return rows[:, 2:].view(np.int8) * rows[:, :2].copy().view("<f2").astype(np.float32)
            """),
            cause="You looked for each scale in front of its own row, much as in the blocks of real GGUF, and here all scales come first.",
            cure="Read all scales first, then all values.", see="right for a matrix of one row, wrong for others"),
        Mistake("big-endian scales", edit("<f2", ">f2"),
            cause="The two bytes of each scale were read in the wrong order.",
            cure="Read the scales as `<f2`, with the sign that points left.", see="numbers close to zero everywhere"),
        Mistake("dims reversed", edit("reshape(out, width)", "reshape(width, out)").edit(
                "scale[:, None]", "scale.repeat(width).reshape(width, out)"
            ),
            cause="The matrix was given the shape (in, out), and the dims are (out, in).",
            cure="Reshape to `dims` as it is.", see="the right numbers in the wrong shape"),
    ),
)
