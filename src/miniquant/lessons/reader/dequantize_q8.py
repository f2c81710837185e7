"""The bytes of a tensor with a scale for each channel."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, body, edit


def dequantize_q8(raw, dims):
    """The weights of a Q8_per_channel tensor.

    raw: bytes, exactly these: out float16 scales, little-endian, then out ×
        in int8 values, row after row; dims: (out, in)
    ->   (out, in) float32: each value × the scale of its row, multiplied in
         float32
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
        ([0.0, 1.0, 2.0], [[0, 3, 0, 5], [1, -2, 3, -4], [5, 6, 7, 8]]),
        ([0.1, 0.3], [[100, -101, 127, 3], [33, 77, -99, 126]]),
        ([65504.0, 3 * 2**-24], [[127, -128], [-127, 1]]),
        ([1.0, 2.0, 4.0], [[1], [-2], [3]]),
        ([-0.5, 2.0], [[3, -4], [5, 6]]),
        ([3.0, 0.0], [[2, -4, 1], [1, 5, -2]]),
    ]
    scales = [abs(float(x)) for x in random.normal(0, 0.01, 8).astype(np.float16)]
    made.append((scales, random.integers(-127, 128, (8, 16)).tolist()))
    return [(_q8_bytes(s, v), (len(v), len(v[0]))) for s, v in made]


def factors(raw, dims):
    """The integers and the scales, whose product is the result."""
    out, width = dims
    integers = np.frombuffer(raw, np.int8, offset=2 * out).reshape(out, width)
    return {"the integers": integers, "the scales": np.frombuffer(raw, "<f2", count=out).reshape(out, 1)}


EXERCISE = Exercise(
    goal="Turn the bytes of a Q8 tensor into a float32 matrix: each row times its own scale.",
    reference=dequantize_q8, oracle=oracle, cases=cases, factors=factors, minutes=5, difficulty="core",
    hints=(
        "Two calls of `np.frombuffer`: one for the scales, one for the values. The number of scales says at which byte the values begin.",
        "Give the scales the shape (out, 1), by `reshape` or by an index of `None`; then numpy multiplies each row by its own scale. Convert to float32 with `astype` before you multiply.",
    ),
    why="one multiplication for each weight turns the file into the weights of a model.",
    mistakes=(
        Mistake("values read from byte 0", edit("offset=2 * out", "offset=0"),
            cause="The bytes of the scales were taken for values: the scales come first.",
            cure="Let the values begin at byte 2 × out.", see="large odd numbers at the start, and everything shifted"),
        Mistake("scales read from the end",
            edit("count=out)", "count=out, offset=out * width)").edit("offset=2 * out", "offset=0"),
            cause="The last bytes were taken for scales, and the scales come first in this format.",
            cure="Read the scales from byte 0 and the values from byte 2 × out.", see="values and scales both wrong"),
        Mistake("values unsigned", edit("np.int8", "np.uint8"),
            cause="The values were read as uint8, so -1 became 255.",
            cure="Read them as `np.int8`.", see="positive values right, negative ones large and positive"),
        Mistake("one scale a column", edit("scale[:, None]", "scale"),
            cause="The scales are lined up with the columns, and a channel is a row.",
            cure="Give the scales the shape (out, 1): `scale[:, None]`.",
            see="an error about shapes, or wrong numbers in a square matrix"),
        Mistake("left in float16", edit(".astype(np.float32)", ""),
            cause="The result is float16, and the reader promises float32.",
            cure="Convert the scales to float32 before you multiply.", see="a result of dtype float16"),
        Mistake("multiplied in float16", edit(".astype(np.float32)", "").edit(
                "return values * scale[:, None]", "return (values * scale[:, None]).astype(np.float32)"
            ),
            cause="The result is that of a product in float16, which keeps 11 bits; 7 bits of q times 11 bits of scale need up to 18.",
            cure="Convert the scales to float32 before you multiply.", see="almost right, and off in the fourth digit"),
        Mistake("values read from byte out", edit("offset=2 * out", "offset=out"),
            cause='A scale takes two bytes, so out scales take 2 × out.',
            cure='Let the values begin at byte 2 × out.', see='everything shifted, and scales among the values'),
        Mistake("divided by the scale", edit("values * scale", "values / scale"),
            cause='Dequantizing multiplies by the scale; quantizing divides.',
            cure='Multiply.', see='weights that are too large where the scale is small'),
        Mistake("scale added", edit("values * scale", "values + scale"),
            cause='A weight is its value times its scale.',
            cure='Multiply.', see='wrong unless both are 0 or 2'),
        Mistake("scales ignored", edit("values * scale[:, None]", "values.astype(np.float32)"),
            cause='The values were returned without their scales.',
            cure='Multiply each row by its scale.', see='whole numbers'),
        Mistake("one scale for all rows", edit("scale[:, None]", "scale[0]"),
            cause='Only the first scale was used.',
            cure='Give each row its own: the shape (out, 1).', see='the first row right, the others wrong'),
        Mistake("float32 scales", edit("\"<f2\", count=out)", "\"<f4\", count=out)").edit("offset=2 * out", "offset=4 * out"),
            cause="The reading goes on after the last byte, as if the scales were float32; they are float16, two bytes each.",
            cure='Read the scales as `<f2`.', see='`buffer is smaller than requested size`'),
        Mistake("flattened", edit("return values * scale[:, None]", "return (values * scale[:, None]).reshape(-1)"),
            cause="The rows were joined; the result must have the shape (out, in).",
            cure='Leave out the reshape.', see='a shape of one dim'),
        Mistake("columns first", edit("reshape(out, width)", "reshape(width, out).T"),
            cause='The values lie row after row, and they were read column after column.',
            cure='Reshape to (out, in), without `.T`.', see='right for a matrix of one row, wrong for others'),
        Mistake("left in float64", edit("astype(np.float32)", "astype(np.float64)"),
            cause='The result is float64, and the docstring promises float32.',
            cure='Convert the scales to float32.', see='a result of dtype float64'),
        Mistake("clipped to -127", edit("values * scale", "values.clip(-127, 127) * scale"),
            cause='This writer never makes -128, but a file may hold it, and a reader takes it.',
            cure='Do not clip.', see='-127 where -128 is expected'),
        Mistake("row by row", body("""
                rows = np.frombuffer(raw, np.uint8).reshape(dims[0], 2 + dims[1])
                return rows[:, 2:].view(np.int8) * rows[:, :2].copy().view("<f2").astype(np.float32)
            """),
            cause="Each scale was looked for before its own row, much as in the blocks of real GGUF, and here all scales come first.",
            cure="Read all scales first, then all values.", see="right for a matrix of one row, wrong for others"),
        Mistake("big-endian scales", edit("<f2", ">f2"),
            cause="The two bytes of each scale were read in the wrong order.",
            cure="Read the scales as `<f2`.", see="numbers close to zero everywhere"),
        Mistake("dims reversed", edit("reshape(out, width)", "reshape(width, out)").edit(
                "scale[:, None]", "scale.repeat(width).reshape(width, out)"
            ),
            cause="The matrix was given the shape (in, out), and the dims are (out, in).",
            cure="Reshape to `dims` as it is.", see="the right numbers in the wrong shape"),
    ),
)
