"""Blocks of MXFP4."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit
from .e8m0_exponents import e8m0_exponents
from .nearest_e2m1 import nearest_e2m1
from .toys import code_of, joined


def encode_mxfp4(w):
    """Blocks of MXFP4.

    w: (n, 32) float32, a block in each row; each size is 0, or from 2**-100
        to 2**100; none is between 0.999999 × 2**k and 2**k, for any k
    ->   bytes, 17 for each block: e of ``e8m0_exponents``, then 16 bytes,
         byte j with the code of weight j in its low and that of weight
         j + 16 in its high nibble; the codes are those of ``nearest_e2m1``
         with the scale 2**(e - 127)
    """
    e = e8m0_exponents(w)[:, None]  # (n, 1) uint8
    scale = (2.0 ** (e.astype(np.int32) - 127)).astype(np.float32)
    codes = nearest_e2m1(w, scale)  # (n, 32)
    nibbles = codes[:, :16] | codes[:, 16:] << 4  # (n, 16)
    return np.concatenate([e, nibbles], axis=1).tobytes()


def oracle(w):
    """One block at a time, one byte at a time."""
    out = b""
    for block in w.tolist():
        largest = max(abs(x) for x in block)
        e = math.frexp(largest)[1] + 124 if largest else 0
        out += bytes([e]) + joined([code_of(x, 2.0 ** (e - 127)) for x in block])
    return out


def cases(random):
    """Values themselves, other scales, tiny and huge ones, ties, weights beyond 6, zeros, several blocks, random weights."""
    ramp = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6] * 2 + [-0.5, -1, -1.5, -2, -3, -4, -6, 0] * 2)
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6.5] * 4) * np.repeat([1, -1], 16)
    made = [
        [ramp],
        [ramp / 64],
        [ramp * 2.0**-90, ramp * 2.0**90],  # no float16 holds these scales
        [ties],
        [np.r_[7.5, -7.9, 4, -np.zeros(29)]],
        [np.zeros(32)],
        [np.zeros(32), ramp * 1024, ties * (1 + 2**-13) / 8, ramp[::-1]],
    ]
    return [*((np.array(w, np.float32),) for w in made), (random.normal(0, 0.05, (12, 32)).astype(np.float32),)]


def fields(w):
    """The parts of each block: (name, start, end)."""
    found = []
    for i in range(len(w)):
        found += [(f"e of block {i}", 17 * i, 17 * i + 1), (f"the nibbles of block {i}", 17 * i + 1, 17 * i + 17)]
    return found


_PACK = "codes[:, :16] | codes[:, 16:] << 4"

EXERCISE = Exercise(
    goal="Encode blocks of 32 weights as MXFP4: a byte for the scale, then 16 bytes of codes.",
    reference=encode_mxfp4, oracle=oracle, cases=cases, minutes=8, difficulty="core", fields=fields,
    hints=(
        "You have both parts: `e8m0_exponents` gives the byte of each block, `nearest_e2m1` the codes. The second one needs the scale, in the shape (n, 1).",
        "`[:, None]` makes a column. The byte is uint8: convert it before you subtract 127. `np.concatenate` with `axis=1` joins the byte and the nibbles block by block, `tobytes()` gives bytes.",
    ),
    why="17 bytes for 32 weights, the same 17 that ggml and the official package write: 4.25 bits a weight.",
    mistakes=(
        Mistake("neighbours in one byte", edit(_PACK, "codes[:, 0::2] | codes[:, 1::2] << 4"),
            cause="A byte holds two neighbours; here byte j holds weight j and weight j + 16.",
            cure="Pack the first half with the second: `codes[:, :16] | codes[:, 16:] << 4`.",
            see="e right, the codes in another order"),
        Mistake("halves exchanged", edit(_PACK, "codes[:, 16:] | codes[:, :16] << 4"),
            cause="The first half of the block went to the high nibbles.",
            cure="Shift the second half, `codes[:, 16:] << 4`.",
            see="e right, and every other byte with its two digits exchanged"),
        Mistake("the scale at the end", edit("[e, nibbles]", "[nibbles, e]"),
            cause="The byte of the scale comes after the codes.",
            cure="Put e first.", see="the right bytes, one place too early"),
        Mistake("all scales first", edit("np.concatenate([e, nibbles], axis=1).tobytes()", "e.tobytes() + nibbles.tobytes()"),
            cause="The bytes of all scales come first, and each block has its own here.",
            cure="Join e and nibbles block by block, with `axis=1`.", see="right for one block, wrong from the second byte on for more"),
        Mistake("a bias of 128", edit("- 127", "- 128"),
            cause="The codes were made for a scale that is half as large as the one that e stands for.",
            cure="The scale is 2 to the power of e - 127.", see="e right, and codes that are too large"),
        Mistake("the bias forgotten", edit("(2.0 ** (e.astype(np.int32) - 127))", "(2.0 ** (e.astype(np.float64) - 0))").edit(".astype(np.float32)", ".clip(0, 3e38).astype(np.float32)"),
            cause="The codes were made for the scale 2 to the power of e, without the - 127.",
            cure="Subtract 127 from e.", see="e right, and every code 0"),
        Mistake("e as the scale", edit("(2.0 ** (e.astype(np.int32) - 127))", "e"),
            cause="The byte e was used as the scale itself.",
            cure="The scale is 2 to the power of e - 127.", see="e right, and every code 0, mostly"),
        Mistake("the exact scale", edit("(2.0 ** (e.astype(np.int32) - 127))", "(np.abs(w).max(axis=1, keepdims=True) / 6)"),
            cause="The codes were made for the largest size / 6, and the file says a power of two.",
            cure="Use the scale that is stored, 2 to the power of e - 127.", see="e right; codes right where the largest size is 6 times the scale"),
        Mistake("no scale", edit("nearest_e2m1(w, scale)", "nearest_e2m1(w, scale * 0 + 1)"),
            cause="The weights were rounded with the scale 1.",
            cure="Give `nearest_e2m1` the scale.", see="codes right where e is 127"),
        Mistake("e as four bytes", edit("[e, nibbles]", '[e.astype("<i4").view(np.uint8), nibbles]'),
            cause="e has four bytes, and an E8M0 has one.",
            cure="Keep e as uint8.", see="three zeros after e"),
        Mistake("levels with 8 added", edit("nearest_e2m1(w, scale)", "(nearest_e2m1(w, scale) + 8) % 16"),
            cause="8 was added to the codes, as Q4_0 does it. Here the highest bit is the sign.",
            cure="Store the codes as they are.", see="`88` where a block of zeros has `00`"),
        Mistake("one byte for each code", edit(_PACK, "codes"),
            cause="Every code has a byte of its own, and two share one.",
            cure="Join two codes in a byte.", see="33 bytes for a block"),
        Mistake("an array", edit(".tobytes()", ""),
            cause="An array was returned, and bytes are asked for.",
            cure="Call `.tobytes()`.", see="an array"),
    ),
)
