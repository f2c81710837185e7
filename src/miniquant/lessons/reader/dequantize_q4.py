"""The bytes of a tensor with a scale for each group of 64 weights."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.gguf_lite_by_hand import pack_oracle
from .unpack_int4 import EXERCISE as UNPACK_INT4
from .unpack_int4 import unpack_int4


def dequantize_q4(raw, dims):
    """The weights of a Q4_per_group_64 tensor.

    raw: bytes, out × in / 64 float16 scales, then out × in / 2 packed bytes; dims: (out, in), in a multiple of 64
    ->   (out, in) float32, values × the scale of their group
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
    ]
    made.append((np.abs(random.normal(0, 0.01, (4, 3))), random.integers(-8, 8, (4, 192))))
    return [(_q4_bytes(s, v), v.shape) for s, v in made]


_WRONG = {mistake.name: mistake.wrong for mistake in UNPACK_INT4.mistakes}
_WITHOUT_SIGN, _SWAPPED, _MINUS_EIGHT = (
    _WRONG[name] for name in ("sign not restored", "nibbles swapped", "shifted by eight")
)

EXERCISE = Exercise(
    goal="Turn the bytes of a Q4 tensor into a float32 matrix: each group of 64 neighbours times its own scale.",
    reference=dequantize_q4, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        "There are out × in / 64 scales, two bytes each, row after row; everything behind them is packed values for your `unpack_int4`.",
        "Reshape the values to (out, groups, 64) and the float32 scales to (out, groups, 1), multiply, and reshape the product back to `dims`.",
    ),
    why="the reshape here must undo the writer's; if the two differ, each number is right and in the wrong place.",
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
            cause="(out, in) times (out, groups) means nothing to numpy, unless there is one group.",
            cure="Reshape the values to (out, groups, 64) and the scales to (out, groups, 1) before you multiply.",
            see="`operands could not be broadcast together`"),
        Mistake("scales transposed",
            edit("scale.reshape(out, width // 64, 1)", "scale.reshape(width // 64, out, 1).swapaxes(0, 1)"),
            cause="The scales were taken for (groups, out), and they lie in the file as (out, groups).",
            cure="Reshape the scales to (out, groups).", see="right for one row or one group, wrong for more"),
        Mistake("one scale a row",
            edit("scale.reshape(out, width // 64, 1)", "scale.reshape(out, width // 64, 1)[:, :1]"),
            cause="Only the first scale of each row was used.",
            cure="Give each group its own: reshape the scales to (out, groups, 1).",
            see="the first 64 columns right, the rest wrong"),
        Mistake("sign not restored", edit("values = unpack_int4", "values = _WITHOUT_SIGN"),
            cause="The nibbles 8 to 15 were left positive, and they mean -8 to -1.",
            cure="Mend `unpack_int4`: subtract 16 where the nibble is 8 or more.", see="no negative weights at all"),
        Mistake("nibbles swapped", edit("values = unpack_int4", "values = _SWAPPED"),
            cause="The high nibble went to the even index.",
            cure="Mend `unpack_int4`: the low nibble comes first.", see="each pair of weights in the wrong order"),
        Mistake("shifted by eight", edit("values = unpack_int4", "values = _MINUS_EIGHT"),
            cause="Subtracting 8 is how real GGUF's Q4_0 reads a nibble; this format keeps two's complement.",
            cure="Mend `unpack_int4`: subtract 16, and only where the nibble is 8 or more.",
            see="-8 × scale where 0 is expected"),
        Mistake("values read from byte 0", edit("offset=2 * n_scales)", "offset=0)[: out * width // 2]"),
            cause="The scales stand in front, and you took their bytes for packed values.",
            cure="Let the values begin behind the scales, at byte 2 × out × in / 64.",
            see="everything shifted by a few weights"),
        Mistake("block by block", body("""
                blocks = np.frombuffer(raw, np.uint8).reshape(-1, 34)
                return (unpack_int4(blocks[:, 2:]) * blocks[:, :2].copy().view("<f2").astype(np.float32)).reshape(dims)
            """),
            cause="You looked for a scale in front of every 32 bytes, as in real GGUF, and here all scales come first.",
            cure="Read all scales first, then all values.", see="right for a single group, wrong for more"),
        Mistake("left in float16", edit(".astype(np.float32)", ""),
            cause="int8 times float16 is float16 in numpy, and the reader promises float32.",
            cure="Convert the scales to float32 before you multiply.", see="a result of dtype float16"),
        Mistake("multiplied in float16", edit(".astype(np.float32)", "").edit(
                "return groups.reshape(out, width)", "return groups.reshape(out, width).astype(np.float32)"
            ),
            cause="The product was computed in float16, which keeps 11 bits, and q × scale needs up to 19.",
            cure="Convert the scales to float32 before you multiply.", see="almost right, and off in the fourth digit"),
    ),
)
