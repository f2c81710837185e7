"""Blocks of Q4_1 from integers, scale and zero point."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest32


def zero_point_to_q4_1(q, scale, zero_point):
    """Blocks of Q4_1 from what a quantizer keeps.

    q: (n, 32) uint8 from 0 to 15, scale: (n, 1) float32, zero_point: (n, 1)
        int16 from 0 to 15
    ->   n × 20 bytes, block after block: scale and -scale × zero_point as
         little-endian float16, then byte j with integer j in its low and
         integer j + 16 in its high nibble. For a scale or a zero point of
         0, 0.0 and -0.0 are both right.

    -scale × zero_point is computed in float32, from the scale before it is
    rounded to float16, and rounded to float16 at the end. Scale and product
    are never too large for float16.
    """
    d = scale.astype("<f2").view(np.uint8)  # (n, 2)
    m = (-scale * zero_point).astype("<f2").view(np.uint8)  # (n, 2)
    values = q[:, :16] | q[:, 16:] << 4  # (n, 16)
    return np.concatenate([d, m, values], axis=1).tobytes()


def oracle(q, scale, zero_point):
    """One block at a time, one byte at a time."""
    out = b""
    for levels, [s], [z] in zip(q.tolist(), scale.tolist(), zero_point.tolist()):
        out += struct.pack("<ee", s, nearest32(-s * z)) + bytes(levels[j] + 16 * levels[j + 16] for j in range(16))
    return out


def q4_1_fields(q, scale, zero_point):
    """d, m and the 16 bytes of each block."""
    fields = []
    for i in range(len(q)):
        at = 20 * i
        names = (f"d of block {i}", f"m of block {i}", f"the values of block {i}")
        fields += [(name, at + a, at + b) for name, (a, b) in zip(names, ((0, 2), (2, 4), (4, 20)))]
    return fields


def _either_zero(function, case):
    """Where the scale or the zero point is 0, m may be 0.0 or -0.0: the same number, in two forms."""
    raw, products = function(*case), case[1] * case[2]
    if not isinstance(raw, bytes) or len(raw) != 20 * len(products):
        return raw
    blocks = [raw[i : i + 20] for i in range(0, len(raw), 20)]
    return b"".join(
        block[:2] + bytes(2) + block[4:] if product == 0 and block[2:4] == b"\x00\x80" else block
        for block, product in zip(blocks, products.flat)
    )


RAMP = np.arange(32, dtype=np.uint8) % 16


def cases(random):
    """A ramp, pairs, two blocks, a zero point of 0, then random blocks."""

    def case(q, scales, zeros):
        return np.array(q, np.uint8), np.float32(np.float16(scales))[:, None], np.int16(zeros)[:, None]

    drawn = random.integers(0, 16, (6, 32)), np.abs(random.normal(0, 0.02, 6)), random.integers(0, 16, 6)
    return [
        case([RAMP], [1], [5]),
        case([np.repeat(np.arange(16), 2)], [0.5], [8]),
        case([RAMP, RAMP[::-1]], [0.5, 2], [3, 12]),
        case([RAMP], [0], [7]),
        case([RAMP], [0.25], [0]),
        case(*drawn),
        (np.array([RAMP], np.uint8), np.float32([[0.1]]), np.int16([[7]])),  # float16 does not hold the scale
        case([RAMP, RAMP, RAMP], [0, 4000, 3e-6], [9, 13, 7]),
        (np.array([RAMP] * 3, np.uint8), np.float32([[0.0041687014], [0.012530518], [2e-8]]), np.int16([[15], [5], [9]])),  # -scale × zero_point ends between two float16; the last scale rounds to 0
        (drawn[0].astype(np.uint8), np.float32(drawn[1])[:, None], np.int16([15, 11, 9, 7, 13, 3])[:, None]),
    ]


EXERCISE = Exercise(
    goal="Write blocks of Q4_1 from what a quantizer keeps: integers, a scale and a zero point for each 32 weights.",
    reference=zero_point_to_q4_1, oracle=oracle, cases=cases, minutes=8, difficulty="core", fields=q4_1_fields,
    observe=_either_zero,
    hints=(
        "Twenty bytes a block: d is the scale, m is -scale × zero_point, both float16; then byte j holds integer j in its low nibble and integer j + 16 in its high one. The integers cross as they are, and m is rounded when it is stored.",
        "Make three arrays of uint8 with a row for each block: `astype` and `view` for d and m, a shift and `|` for the nibbles. `np.concatenate` joins them, `tobytes` makes bytes.",
    ),
    why="nothing was rounded but the minimum: whatever chose the integers, they cross the bridge untouched.",
    mistakes=(
        Mistake("the minimum unsigned", edit("(-scale * zero_point)", "(scale * zero_point)"),
            cause="m was stored as scale × zero_point, and a reader adds m.",
            cure="Store -scale × zero_point.", see="the sign bit missing in byte 3"),
        Mistake("the minimum of the rounded scale", edit("(-scale * zero_point)", "(-scale.astype(np.float16).astype(np.float32) * zero_point)"),
            cause="m was computed from the scale that was rounded to float16 before.",
            cure="Compute it from the scale as it is given, and round at the end.", see="right where float16 holds the scale, else a last digit of m"),
        Mistake("multiplied in float64", edit("(-scale * zero_point)", "(-scale.astype(np.float64) * zero_point)"),
            cause="-scale × zero_point was computed in float64. Float32 rounds it first, and then it may lie between two float16.",
            cure="Multiply float32 by the zero point.", see="nearly everything right, and a last digit of m"),
        Mistake("the zero point stored", edit("(-scale * zero_point)", "zero_point"),
            cause="m is a weight, the smallest that the block can hold, and not an integer.",
            cure="Store -scale × zero_point.", see="a whole number in m"),
        Mistake("the scale left out of the minimum", edit("(-scale * zero_point)", "(-zero_point)"),
            cause="-zero_point counts steps, and m is a weight.",
            cure="Multiply it by the scale.", see="right for a scale of 1, a whole number in m for any other"),
        Mistake("the scale applied twice", edit("(-scale * zero_point)", "(-scale * scale * zero_point)"),
            cause="m has the scale in it two times.",
            cure="Store -scale × zero_point.", see="right for a scale of 1, a wrong m for any other"),
        Mistake("d and m exchanged", edit("[d, m, values]", "[m, d, values]"),
            cause="m stands in front, and d belongs there.",
            cure="Write d, then m.", see="the first four bytes in the order 2 3 0 1"),
        Mistake("neighbours in one byte", edit("q[:, :16] | q[:, 16:] << 4", "q[:, 0::2] | q[:, 1::2] << 4"),
            cause="A byte holds two neighbours, as in GGUF-lite; in Q4_1 byte j holds integer j and integer j + 16.",
            cure="Pack the first half with the second: `q[:, :16] | q[:, 16:] << 4`.",
            see="d and m right, the values in another order"),
        Mistake("halves exchanged", edit("q[:, :16] | q[:, 16:] << 4", "q[:, 16:] | q[:, :16] << 4"),
            cause="The first half of the block went to the high nibbles.",
            cure="Shift the second half, `q[:, 16:] << 4`.",
            see="d and m right, every byte of the values with its two digits exchanged"),
        Mistake("the zero point taken off the integers",
            edit("    values =", "    q = ((q.astype(np.int16) - zero_point) & 15).astype(np.uint8)\n    values ="),
            cause="The minimum undoes the zero point already; the integers are stored from 0 to 15.",
            cure="Pack q as it is.", see="d and m right, the values shifted around"),
        Mistake("scales first",
            edit("np.concatenate([d, m, values], axis=1).tobytes()", "d.tobytes() + m.tobytes() + values.tobytes()"),
            cause="All d stand in front, then all m, then all values; in GGUF each block has its own.",
            cure="Join the three parts row by row, with `axis=1`.",
            see="right for one block, wrong from the third byte on for more"),
        Mistake("float32 scales", edit('scale.astype("<f2")', 'scale.astype("<f4")').edit(
                '(-scale * zero_point).astype("<f2")', '(-scale * zero_point).astype("<f4")'
            ),
            cause="d and m take four bytes each, and a block gives them two.",
            cure='Convert with `.astype("<f2")`.', see="24 bytes for a block where 20 are expected"),
        Mistake("big-endian", edit('scale.astype("<f2")', 'scale.astype(">f2")').edit(
                '(-scale * zero_point).astype("<f2")', '(-scale * zero_point).astype(">f2")'
            ),
            cause="The bytes of d and m lie the other way round.",
            cure='Use `"<f2"`.', see="`3c 00` where `00 3c` is expected"),
    ),
)
