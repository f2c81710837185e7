"""Super-blocks of Q4_K as weights."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit
from .k_nibbles import k_nibbles
from .toys import made_block, split_super_block
from .unpack_k_scales import EXERCISE as UNPACK_K_SCALES
from .unpack_k_scales import unpack_k_scales


def decode_q4_k(raw):
    """Weights from super-blocks of Q4_K.

    raw: n × 144 bytes, n at least 1
    ->   (n, 256) float32: d × scale × q - dmin × minimum, right to 2e-6
    """
    rows = []
    for start in range(0, len(raw), 144):
        d, dmin, packed, qs = split_super_block(raw[start : start + 144])
        scales, mins = unpack_k_scales(packed)
        steps = np.float32(d) * scales[:, None].astype(np.float32)  # (8, 1)
        lows = np.float32(dmin) * mins[:, None].astype(np.float32)
        rows.append((steps * k_nibbles(qs) - lows).ravel())
    return np.array(rows, np.float32)


def oracle(raw):
    """One weight at a time, in Python's own arithmetic."""
    found = []
    for start in range(0, len(raw), 144):
        d, dmin = struct.unpack_from("<2e", raw, start)
        s, qs = raw[start + 4 : start + 16], raw[start + 16 : start + 144]
        row = []
        for i in range(256):
            run, place = divmod(i, 64)
            sub, byte = i // 32, qs[32 * run + place % 32]
            q = byte >> 4 if place >= 32 else byte & 15
            if sub < 4:
                sc, m = s[sub] & 63, s[sub + 4] & 63
            else:
                sc = s[sub + 4] & 15 | s[sub - 4] >> 6 << 4
                m = s[sub + 4] >> 4 | s[sub] >> 6 << 4
            row.append(d * sc * q - dmin * m)
        found.append(row)
    return np.array(found, np.float32)


def cases(random):
    """One super-block without mins, one with, two of them, d and dmin below 0 or 0, then random ones."""
    ramp = bytes(i % 16 | (15 - i % 16) << 4 for i in range(128))
    plain = made_block(1 / 64, 1 / 64, bytes([1, 2, 3, 4, 1, 1, 2, 2, 0x15, 0x26, 0x37, 0x48]), ramp)
    made = [
        made_block(1 / 64, 0, bytes([1] * 4 + [0] * 4 + [1] * 4), ramp),
        plain,
        plain + made_block(1 / 128, 1 / 32, bytes(range(200, 212)), ramp[::-1]),
    ]
    ends = bytes([63, 64, 128, 192, 64, 63, 127, 191, *range(104, 108)])  # on both sides of where the upper bits change
    drawn = b"".join(
        made_block(a, b, random.bytes(12), random.bytes(128)) for a, b in random.uniform(0, 0.01, (4, 2)).tolist()
    )
    made.append(made_block(-1 / 64, -1 / 128, ends, ramp) + made_block(0, 1 / 64, bytes([255] * 12), ramp))
    return [(raw,) for raw in [*made, drawn]]


_TWO_RUNS = next(m.wrong for m in UNPACK_K_SCALES.mistakes if m.name == "two runs of six bytes")

EXERCISE = Exercise(
    goal="Turn super-blocks of Q4_K into weights: d × scale × q - dmin × minimum, each sub-block with its own scale and minimum.",
    reference=decode_q4_k, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=2e-6,
    hints=(
        "You have all parts: `split_super_block`, `unpack_k_scales`, `k_nibbles`. Row j of the nibbles belongs to scale j and minimum j, so eight numbers must become a column of shape (8, 1).",
        "`[:, None]` makes a column of an array, and `np.float32(...)` a number whose products with integers are not integers. `.ravel()` turns (8, 32) into one row; `np.array` makes one array of a list of rows.",
    ),
    why="256 weights came out of 144 bytes, and every bit was used.",
    mistakes=(
        Mistake("8 subtracted and the minimum added",
            edit("steps * k_nibbles(qs) - lows", "steps * (k_nibbles(qs) - np.float32(8)) + lows"),
            cause="The results are (q - 8) × d × scale + dmin × minimum. The 8 belongs to Q4_0, and the minimum is subtracted.",
            cure="Write d × scale × q - dmin × minimum.", see="weights of about the right size, and wrong everywhere"),
        Mistake("the minimum added", edit("k_nibbles(qs) - lows", "k_nibbles(qs) + lows"),
            cause="dmin × minimum is stored as a positive number, and it lies below zero.",
            cure="Subtract it.", see="right where the minimum is 0, weights that are too large elsewhere, by twice dmin × minimum"),
        Mistake("8 subtracted", edit("steps * k_nibbles(qs)", "steps * (k_nibbles(qs) - np.float32(8))"),
            cause="q goes from 0 to 15 here; its zero is the minimum's work.",
            cure="Subtract nothing from q.", see="every weight too small by 8 steps"),
        Mistake("the minimum without dmin", edit("np.float32(dmin) * mins", "mins"),
            cause="The minimum is a small integer, and dmin says what one of it is worth.",
            cure="Multiply it by dmin.", see="weights around -20"),
        Mistake("the scale without d", edit("np.float32(d) * scales", "scales"),
            cause="The scale is a small integer, and d says what one of it is worth.",
            cure="Multiply it by d.", see="weights in the hundreds"),
        Mistake("d without the scale", edit("np.float32(d) * scales[:, None].astype(np.float32)", "np.float32(d)"),
            cause="Every sub-block has a scale of its own, and you used d alone.",
            cure="Multiply d by the sub-block's scale.", see="right where the scale is 1"),
        Mistake("no minimum", edit("steps * k_nibbles(qs) - lows", "steps * k_nibbles(qs)"),
            cause="The mins were unpacked and not used.",
            cure="Subtract dmin × minimum.", see="right where the minimum is 0, weights that are too large elsewhere, by dmin × minimum"),
        Mistake("the minimum inside", edit("steps * k_nibbles(qs) - lows", "steps * (k_nibbles(qs) - lows)"),
            cause="The minimum was subtracted from q, before the scale.",
            cure="Subtract dmin × minimum from d × scale × q.", see="right where the minimum is 0, elsewhere off by more where the scale is larger"),
        Mistake("scales in two runs", edit("unpack_k_scales(packed)", "_TWO_RUNS(packed)"),
            cause="The scales were read as two runs of six bytes.",
            cure="Use your `unpack_k_scales`.",
            see="nearly every weight wrong, but in the right order within a sub-block"),
        Mistake("neighbours in one byte",
            edit("k_nibbles(qs)", "np.stack([qs & 15, qs >> 4], axis=1).reshape(8, 32)"),
            cause="Byte i was taken for weights 2i and 2i + 1.",
            cure="Use your `k_nibbles`.", see="the right numbers in the wrong places, where the scales are equal"),
        Mistake("scales in turn", edit("scales[:, None]", "np.tile(scales, 32).reshape(8, 32)").edit(
                "mins[:, None]", "np.tile(mins, 32).reshape(8, 32)"
            ),
            cause="Weight i took scale i % 8, and a sub-block is 32 neighbours.",
            cure="Repeat each scale 32 times, or use `scales[:, None]`.", see="right where all scales are equal"),
        Mistake("computed in float16", edit(
                "np.float32(d) * scales[:, None].astype(np.float32)",
                "np.float16(d) * scales[:, None].astype(np.float16)",
            ).edit(
                "np.float32(dmin) * mins[:, None].astype(np.float32)",
                "np.float16(dmin) * mins[:, None].astype(np.float16)",
            ),
            cause="d was left a float16, and the products with it.",
            cure="Convert d and dmin to float32 first.", see="right to three digits"),
        Mistake("multiplied in uint8",
            edit("steps * k_nibbles(qs)", "np.float32(d) * (scales[:, None] * k_nibbles(qs))"),
            cause="scale × q was computed first, in uint8, where 63 × 15 does not fit and wraps around in silence.",
            cure="Convert the scales to float32, or multiply them by d first.",
            see="right where the scales are small, much too small elsewhere"),
        Mistake("the first super-block alone", edit("range(0, len(raw), 144)", "range(0, 144, 144)"),
            cause="Only the first 144 bytes were decoded.",
            cure="Go on in steps of 144 bytes, to the end of raw.", see="(1, 256) where (2, 256) is expected"),
    ),
)
