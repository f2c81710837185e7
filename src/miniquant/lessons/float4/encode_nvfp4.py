"""Blocks of NVFP4."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from .e4m3_values import e4m3_values
from .nearest_e2m1 import nearest_e2m1
from .toys import code_of, e4m3, joined


def encode_nvfp4(w, d):
    """Blocks of NVFP4, with scales that are chosen already.

    w: (n, 64) float32, a block in each row; d: (n, 4) uint8 from 0 to 126,
        the scales of its four parts of 16 weights as codes of E4M3
    ->   bytes, 36 for each block: its four d, then 8 bytes for each part,
         byte j with the code of weight j of the part in its low and that of
         weight j + 8 in its high nibble; the codes are those of
         ``nearest_e2m1``, with the scale that d stands for
    """
    parts = w.reshape(-1, 16)  # (4n, 16)
    scale = e4m3_values(d).reshape(-1, 1)  # (4n, 1)
    codes = nearest_e2m1(parts, scale)
    nibbles = codes[:, :8] | codes[:, 8:] << 4  # (4n, 8)
    return np.concatenate([d, nibbles.reshape(-1, 32)], axis=1).tobytes()


def oracle(w, d):
    """One block at a time, one part at a time, one byte at a time."""
    out = b""
    for block, scales in zip(w.tolist(), d.tolist()):
        out += bytes(scales)
        for i, code in enumerate(scales):
            out += joined([code_of(x, e4m3(code)) for x in block[16 * i : 16 * i + 16]])
    return out


def cases(random):
    """Equal scales, other ones in each part, ties, a scale of 0, several blocks, random weights."""
    ramp = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -1.5, -2, -3, -4, -6, 0])
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 9] * 2) * np.repeat([1, -1], 8)
    made = [
        ([np.tile(ramp, 4)], [[56, 56, 56, 56]]),
        ([np.r_[ramp, ramp * 2, ramp / 2, ramp * 1.5]], [[56, 64, 48, 60]]),
        ([np.r_[ties, ramp[::-1], ties[::-1], ramp]], [[56, 56, 56, 0]]),
        ([np.tile(ties / 64, 4), np.r_[ramp, ramp * 8, ramp / 512, ramp * 448]], [[8, 8, 0, 8], [56, 80, 1, 126]]),
    ]
    w = random.normal(0, 0.05, (6, 64)).astype(np.float32)
    d = random.integers(5, 16, (6, 4), np.uint8)
    return [*((np.array(w, np.float32), np.array(d, np.uint8)) for w, d in made), (w, d)]


def fields(w, d):
    """The parts of each block: (name, start, end)."""
    found = []
    for i in range(len(w)):
        at = 36 * i
        found.append((f"the scales of block {i}", at, at + 4))
        found += [(f"the nibbles of part {p} of block {i}", at + 4 + 8 * p, at + 12 + 8 * p) for p in range(4)]
    return found


_PACK = "codes[:, :8] | codes[:, 8:] << 4"

EXERCISE = Exercise(
    goal="Encode blocks of 64 weights as NVFP4: four scales, then 32 bytes of codes.",
    reference=encode_nvfp4, oracle=oracle, cases=cases, minutes=9, difficulty="core", fields=fields,
    hints=(
        "Cut each block into four rows of 16 weights: then every row has one scale, as `nearest_e2m1` wants it. Pack each row, and put four packed rows together again.",
        "`reshape` with -1 makes as many rows as there are: of 16 weights, of one scale for `nearest_e2m1`, and at the end of the 32 bytes of a block.",
    ),
    why="36 bytes for 64 weights: a scale of one byte for every 16, and still 4.5 bits a weight, as in Q4_0.",
    mistakes=(
        Mistake("halves of the whole block", edit(
                "    nibbles = codes[:, :8] | codes[:, 8:] << 4",
                "    codes = codes.reshape(-1, 64)\n    nibbles = codes[:, :32] | codes[:, 32:] << 4"),
            cause="Weight j shares a byte with weight j + 32. Here it is weight j + 8 of the same part.",
            cure="Pack each part of 16 weights alone.", see="scales right, the codes in another order"),
        Mistake("halves of 32 weights", edit(
                "    nibbles = codes[:, :8] | codes[:, 8:] << 4",
                "    codes = codes.reshape(-1, 32)\n    nibbles = codes[:, :16] | codes[:, 16:] << 4"),
            cause="Weight j shares a byte with weight j + 16, as in MXFP4. Here it is weight j + 8 of the same part.",
            cure="Pack each part of 16 weights alone.", see="scales right, the codes in another order"),
        Mistake("neighbours in one byte", edit(_PACK, "codes[:, 0::2] | codes[:, 1::2] << 4"),
            cause="A byte holds two neighbours; here byte j of a part holds its weights j and j + 8.",
            cure="Pack the first half of a part with the second.", see="scales right, the codes in another order"),
        Mistake("halves exchanged", edit(_PACK, "codes[:, 8:] | codes[:, :8] << 4"),
            cause="The first half of each part went to the high nibbles.",
            cure="Shift the second half, `codes[:, 8:] << 4`.", see="scales right, and every other byte with its two digits exchanged"),
        Mistake("each scale before its part", edit("np.concatenate([d, nibbles.reshape(-1, 32)], axis=1)", "np.concatenate([d.reshape(-1, 1), nibbles], axis=1)"),
            cause="Each scale is followed by its own eight bytes, and a block begins with all four.",
            cure="Join the four scales with the 32 bytes of the block.", see="the first byte right, and the second is a byte of codes"),
        Mistake("the scales at the end", edit("[d, nibbles.reshape(-1, 32)]", "[nibbles.reshape(-1, 32), d]"),
            cause="The four scales come after the codes.",
            cure="Put them first.", see="the right bytes, four places too early"),
        Mistake("all scales first", edit("np.concatenate([d, nibbles.reshape(-1, 32)], axis=1).tobytes()", "d.tobytes() + nibbles.tobytes()"),
            cause="The scales of all blocks come first, and each block has its own here.",
            cure="Join scales and codes block by block, with `axis=1`.", see="right for one block, wrong from the fifth byte on for more"),
        Mistake("the codes of the scales as scales", edit("e4m3_values(d)", "d.astype(np.float32)"),
            cause="The byte d was used as the scale itself.",
            cure="The scale is the number that d stands for: `e4m3_values(d)`.", see="scales right, and nearly every code 0"),
        Mistake("the exact scale", edit("e4m3_values(d).reshape(-1, 1)", "np.abs(parts).max(axis=1, keepdims=True) / 6"),
            cause="The codes were made for the largest size / 6, and the file says d.",
            cure="Use the scale that is stored.", see="right where d is exactly the largest size / 6"),
        Mistake("one scale for the block", edit("e4m3_values(d).reshape(-1, 1)", "np.repeat(e4m3_values(d)[:, 0], 4)[:, None]"),
            cause="All four parts were rounded with the first scale.",
            cure="Each part of 16 weights has its own.", see="the first part right, and the others where the four scales are equal"),
        Mistake("scales in turn", edit("e4m3_values(d).reshape(-1, 1)", "e4m3_values(d).T.reshape(-1, 1)"),
            cause="With more than one block, the scales were taken column by column.",
            cure="Reshape d without a transpose.", see="right for one block"),
        Mistake("half of the scale", edit("e4m3_values(d).reshape(-1, 1)", "e4m3_values(d).reshape(-1, 1) / 2"),
            cause="The scale was halved. ggml does this because its values are doubled; yours are not.",
            cure="Use the scale itself.", see="scales right, and codes that are too large"),
        Mistake("levels with 8 added", edit("nearest_e2m1(parts, scale)", "(nearest_e2m1(parts, scale) + 8) % 16"),
            cause="8 was added to the codes, as Q4_0 does it. Here the highest bit is the sign.",
            cure="Store the codes as they are.", see="`88` where a weight of 0 has `00`"),
        Mistake("an array", edit(".tobytes()", ""),
            cause="An array was returned, and bytes are asked for.",
            cure="Call `.tobytes()`.", see="an array"),
    ),
)
