"""Blocks of Q4_1 as weights."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest32


def decode_q4_1(raw):
    """Weights from blocks of Q4_1.

    raw: n × 20 bytes, n at least 1; d and m are little-endian float16
    ->   (n, 32) float32: d × integer + m in float32, the 16 low nibbles
         first, then the 16 high ones
    """
    rows = np.frombuffer(raw, np.uint8).reshape(-1, 20)
    d = np.ascontiguousarray(rows[:, :2]).view("<f2").astype(np.float32)  # (n, 1)
    m = np.ascontiguousarray(rows[:, 2:4]).view("<f2").astype(np.float32)  # (n, 1)
    packed = rows[:, 4:]  # (n, 16)
    q = np.concatenate([packed & 15, packed >> 4], axis=1)  # (n, 32) uint8
    return d * q + m


def oracle(raw):
    """One block at a time, one weight at a time."""
    found = []
    for start in range(0, len(raw), 20):
        d, m = struct.unpack_from("<ee", raw, start)
        packed = raw[start + 4 : start + 20]
        levels = [byte % 16 for byte in packed] + [byte // 16 for byte in packed]
        found.append([nearest32(nearest32(d * q) + m) for q in levels])
    return np.array(found, np.float32)


def cases(random):
    """Ramps with several d and m, two blocks, a d of 0, then random blocks."""

    def block(d, m, values):
        return struct.pack("<ee", d, m) + values

    ramp = bytes(j + 16 * (15 - j) for j in range(16))
    drawn = b"".join(
        block(abs(d), -8 * abs(d), random.integers(0, 256, 16, np.uint8).tobytes()) for d in random.normal(0, 1, 5)
    )
    made = [
        block(1, -5, ramp),
        bytes(20) + block(0.5, -2, ramp),
        block(0.5, 0, bytes(range(16))),
        block(1, -8, ramp) + block(2, -3, bytes(range(0, 256, 16))),
        block(0, 0.25, ramp) + block(0.25, 1, ramp),
        block(-0.5, 3, bytes(range(240, -1, -16))),
        block(9000, -60000, ramp) + block(2e-6, 1e-5, ramp) + block(0.1, -0.7, ramp),
        drawn,
    ]
    return [(raw,) for raw in made]


EXERCISE = Exercise(
    goal="Turn blocks of Q4_1 back into weights: d × integer + m, the low nibbles first, then the high ones.",
    reference=decode_q4_1, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        "Give the bytes a row for each block, as in `decode_q4_0`: columns 0 and 1 are d, 2 and 3 are m, the other 16 hold the integers.",
        "`np.ascontiguousarray` and `view` read the float16 numbers, as in lab 15. `np.concatenate` joins low and high nibbles along axis 1; nothing is subtracted from them.",
    ),
    why="the other end of the bridge: from here on nobody knows that there ever was a zero point.",
    mistakes=(
        Mistake("m subtracted", edit("d * q + m", "d * q - m"),
            cause="m is the smallest weight itself, mostly negative already.",
            cure="Add m.", see="every weight too large by -2 × m"),
        Mistake("m left out", edit("d * q + m", "d * q"),
            cause="That is d × integer alone, which starts at zero.",
            cure="Add m.", see="no negative weights"),
        Mistake("m read unsigned", edit("d * q + m", "d * q + np.abs(m)"),
            cause="m lost its sign.",
            cure="Read both as float16, which has a sign of its own.",
            see="right where m is positive, too large elsewhere"),
        Mistake("d and m exchanged", edit("d * q + m", "m * q + d"),
            cause="d is in the first two bytes, m in the next two.",
            cure="Exchange them.", see="weights that fall where they should rise"),
        Mistake("m multiplied by d", edit("d * q + m", "d * (q + m)"),
            cause="m is a weight and not a number of steps.",
            cure="Multiply first, then add.", see="right for d = 1, for any other all weights of a block off by the same amount"),
        Mistake("8 subtracted", edit("d * q + m", "d * (q - np.float32(8)) + m"),
            cause="That is Q4_0, which has no m.",
            cure="Take the integers as they are, 0 to 15.", see="every weight too small by 8 × d"),
        Mistake("the scale applied twice", edit("d * q + m", "d * d * q + m"),
            cause="The integers were multiplied by d two times.",
            cure="Multiply once.", see="right for d = 1, for any other the weights of a block too near to each other or too far apart"),
        Mistake("neighbours in one byte", edit(
                "np.concatenate([packed & 15, packed >> 4], axis=1)",
                "np.stack([packed & 15, packed >> 4], axis=2).reshape(-1, 32)",
            ),
            cause="The two nibbles of a byte were taken for neighbours, as in GGUF-lite.",
            cure="All 16 low nibbles come first, then all 16 high ones.", see="the right numbers in the wrong places"),
        Mistake("halves exchanged", edit("[packed & 15, packed >> 4]", "[packed >> 4, packed & 15]"),
            cause="The high nibbles came first.",
            cure="Put the low nibbles in front.", see="the two halves of each block exchanged"),
        Mistake("computed in float16", edit("return d * q + m", "return (d * q + m).astype(np.float16)"),
            cause="The weights are float16, and float32 is asked for.",
            cure="Convert both with `.astype(np.float32)`.", see="the right numbers as float16"),
    ),
)
