"""The bytes of a tensor with a scale for each group of 64 weights."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.gguf_lite_by_hand import pack_oracle
from .unpack_int4 import EXERCISE as UNPACK_INT4
from .unpack_int4 import unpack_int4


def dequantize_q4(raw, dims):
    """The weights of a Q4_per_group_64 tensor.

    raw: bytes, exactly these: out × in / 64 float16 scales, little-endian,
        all groups of row 0 first; then out × in / 2 packed bytes, row after
        row; dims: (out, in), ``in`` is a multiple of 64
    ->   (out, in) float32: each value × the scale of its group of 64
         neighbours, multiplied in float32
    """
    out, width = dims
    n_scales = out * width // 64
    scale = np.frombuffer(raw, "<f2", count=n_scales).astype(np.float32)
    values = unpack_int4(np.frombuffer(raw, np.uint8, offset=2 * n_scales))
    groups = values.reshape(out, width // 64, 64) * scale.reshape(out, width // 64, 1)
    return groups.reshape(out, width)


def oracle(raw, dims):
    """One weight at a time: which group, which byte, which half of it."""
    out, width = dims
    n_scales = out * (width // 64)
    flat = []
    for i in range(out * width):
        (scale,) = struct.unpack_from("<e", raw, 2 * (i // 64))
        byte = raw[2 * n_scales + i // 2]
        nibble = byte // 16 if i % 2 else byte % 16
        flat.append((nibble - 16 if nibble > 7 else nibble) * scale)
    return np.array([flat[i * width : (i + 1) * width] for i in range(out)], np.float32)


def _q4_bytes(scales, values):
    flat = np.asarray(scales, np.float32).reshape(-1).tolist()
    return struct.pack(f"<{len(flat)}e", *flat) + pack_oracle(values.astype(np.int8)).tobytes()


def cases(random):
    """Ramps from -8 to 7 with one group and with several, then random weights."""
    ramp = np.tile(np.arange(-8, 8), 4)
    made = [
        ([1.0], ramp[None]),
        ([1.0, 2.0], np.stack([ramp, ramp[::-1]])),
        ([[1.0, 2.0]], np.concatenate([ramp, ramp])[None]),
        ([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]], np.tile(ramp, (2, 3))),
        ([[0.1, 0.3], [0.0, 0.7]], np.tile(ramp, (2, 2))),
        ([[65504.0], [3 * 2**-24], [1.0]], np.stack([ramp, ramp[::-1], ramp])),
        ([-0.5, 2.0], np.stack([ramp, ramp[::-1]])),
    ]
    made.append((np.abs(random.normal(0, 0.01, (4, 3))), random.integers(-8, 8, (4, 192))))
    return [(_q4_bytes(s, v), v.shape) for s, v in made]


def factors(raw, dims):
    """The integers and the scales, whose product is the result."""
    out, width = dims
    groups = width // 64
    scales = np.frombuffer(raw, "<f2", count=out * groups).reshape(out, groups, 1)
    nibbles = np.array([nibble for byte in raw[2 * out * groups :] for nibble in (byte % 16, byte // 16)])
    return {"the integers": np.where(nibbles > 7, nibbles - 16, nibbles).reshape(out, groups, 64), "the scales": scales}


_WRONG = {mistake.name: mistake.wrong for mistake in UNPACK_INT4.mistakes}
_WITHOUT_SIGN, _SWAPPED, _MINUS_EIGHT = (
    _WRONG[name] for name in ("sign not restored", "nibbles swapped", "shifted by eight")
)

EXERCISE = Exercise(
    goal="Turn the bytes of a Q4 tensor into a float32 matrix: each group of 64 neighbours times its own scale.",
    reference=dequantize_q4, oracle=oracle, cases=cases, factors=factors, minutes=5, difficulty="core",
    hints=(
        "Count the scales first: their number says where the packed values begin. Your `unpack_int4` does the rest of the reading.",
        "As in `encode_q4`, a third axis of 64 neighbours helps: with the scales in the shape (out, groups, 1), numpy multiplies each group by its own. `reshape` goes there and back.",
    ),
    why="this reshape must undo the writer's; if the two differ, weights are multiplied by the scales of other groups.",
    mistakes=(
        Mistake("scales change from weight to weight", edit("width // 64, 64)", "64, width // 64)").edit(
                "scale.reshape(out, width // 64, 1)", "scale.reshape(out, 1, width // 64)"
            ),
            cause="Neighbours were given different scales, as `np.tile` or a reshape to (out, 64, groups) does, and all 64 share one.",
            cure="Reshape to (out, groups, 64), the 64 last, or use `np.repeat(scale, 64, axis=1)`.",
            see="right for rows of one group, wrong for longer rows"),
        Mistake("scales not spread over their groups", edit("values.reshape(out, width // 64, 64)", "values.reshape(out, width)").edit(
                "scale.reshape(out, width // 64, 1)", "scale.reshape(out, width // 64)"
            ),
            cause="numpy cannot multiply (out, in) by (out, groups) if a row has more than one group.",
            cure="Reshape the values to (out, groups, 64) and the scales to (out, groups, 1) before you multiply.",
            see="`operands could not be broadcast together`"),
        Mistake("scales transposed",
            edit("scale.reshape(out, width // 64, 1)", "scale.reshape(width // 64, out, 1).swapaxes(0, 1)"),
            cause="The scales were read as (groups, out), and the file holds them as (out, groups).",
            cure="Reshape the scales to (out, groups).", see="right for one row or one group, wrong for more"),
        Mistake("one scale a row",
            edit("scale.reshape(out, width // 64, 1)", "scale.reshape(out, width // 64, 1)[:, :1]"),
            cause="Only the first scale of each row was used.",
            cure="Give each group its own: reshape the scales to (out, groups, 1).",
            see="the first 64 columns right, the rest wrong"),
        Mistake("sign not restored", edit("values = unpack_int4", "values = _WITHOUT_SIGN"),
            cause="The nibbles 8 to 15 were left positive, and they mean -8 to -1.",
            cure="Fix `unpack_int4`: subtract 16 where the nibble is 8 or more.", see="no negative weights at all"),
        Mistake("nibbles swapped", edit("values = unpack_int4", "values = _SWAPPED"),
            cause="The high nibble is at the even index.",
            cure="Fix `unpack_int4`: the low nibble comes first.", see="each pair of weights in the wrong order"),
        Mistake("shifted by eight", edit("values = unpack_int4", "values = _MINUS_EIGHT"),
            cause="Every value is the nibble - 8, as in real GGUF's Q4_0; this format keeps two's complement.",
            cure="Fix `unpack_int4`: subtract 16, and only where the nibble is 8 or more.",
            see="-8 × scale where 0 is expected"),
        Mistake("values read from byte 0", edit("offset=2 * n_scales)", "offset=0)[: out * width // 2]"),
            cause="The bytes of the scales were taken for packed values: the scales come first.",
            cure="Let the values begin after the scales, at byte 2 × out × in / 64.",
            see="everything shifted by a few weights"),
        Mistake("not unpacked", edit("unpack_int4(np.frombuffer(raw, np.uint8, offset=2 * n_scales))", "np.frombuffer(raw, np.int8, offset=2 * n_scales)"),
            cause="The number of values does not fit the dims, as if each byte were one value; it holds two.",
            cure='Call `unpack_int4`.', see='`cannot reshape array`'),
        Mistake("one scale for all groups", edit("scale.reshape(out, width // 64, 1)", "scale[0]"),
            cause='Only the first scale was used.',
            cure='Give each group its own: the shape (out, groups, 1).', see='the first group right, the others wrong'),
        Mistake("divided by the scale", edit("width // 64, 64) * scale", "width // 64, 64) / scale"),
            cause='Dequantizing multiplies by the scale; quantizing divides.',
            cure='Multiply.', see='weights that are too large where the scale is small'),
        Mistake("scales ignored", edit("* scale.reshape(out, width // 64, 1)", "* np.float32(1)"),
            cause='The values were returned without their scales.',
            cure='Multiply each group by its scale.', see='whole numbers'),
        Mistake("big-endian scales", edit("<f2", ">f2"),
            cause='The two bytes of each scale were read in the wrong order.',
            cure='Read the scales as `<f2`.', see='numbers close to zero everywhere'),
        Mistake("left as groups", edit("return groups.reshape(out, width)", "return groups.reshape(-1, 64)"),
            cause='The result has one row for each group, and the matrix has the shape (out, in).',
            cure='Reshape to `dims`.', see='(4, 64) where (2, 128) is expected'),
        Mistake("dims reversed", edit("return groups.reshape(out, width)", "return groups.reshape(width, out)"),
            cause='The matrix was given the shape (in, out), and the dims are (out, in).',
            cure='Reshape to `dims` as it is.', see='the right numbers in the wrong shape'),
        Mistake("a scale for each row counted", edit("n_scales = out * width // 64", "n_scales = out"),
            cause="It works with one group in a row alone, as if each row had one scale; it has in / 64.",
            cure='Count out × in / 64 scales.', see='right for rows of one group, an error for longer rows'),
        Mistake("left in float64", edit("astype(np.float32)", "astype(np.float64)"),
            cause='The result is float64, and the docstring promises float32.',
            cure='Convert the scales to float32.', see='a result of dtype float64'),
        Mistake("block by block", body("""
                blocks = np.frombuffer(raw, np.uint8).reshape(-1, 34)
                return (unpack_int4(blocks[:, 2:]) * blocks[:, :2].copy().view("<f2").astype(np.float32)).reshape(dims)
            """),
            cause="A scale was looked for before the 32 bytes of each group, much as in the blocks of real GGUF, and here all scales come first.",
            cure="Read all scales first, then all values.", see="right for a single group, wrong for more"),
        Mistake("left in float16", edit(".astype(np.float32)", ""),
            cause="The result is float16, and the reader promises float32.",
            cure="Convert the scales to float32 before you multiply.", see="a result of dtype float16"),
        Mistake("multiplied in float16", edit(".astype(np.float32)", "").edit(
                "return groups.reshape(out, width)", "return groups.reshape(out, width).astype(np.float32)"
            ),
            cause="The result is that of a product in float16, which keeps 11 bits; 3 bits of q times 11 bits of scale need up to 14.",
            cure="Convert the scales to float32 before you multiply.", see="almost right, and off in the fourth digit"),
    ),
)
