"""Weights from blocks of Q4_0."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit


def decode_q4_0(raw):
    """Weights from blocks of Q4_0.

    raw: bytes, n × 18 of them; d is a little-endian float16
    ->   (n, 32) float32: d × (level - 8), the 16 low nibbles first, then
         the 16 high ones
    """
    rows = np.frombuffer(raw, np.uint8).reshape(-1, 18)
    d = np.ascontiguousarray(rows[:, :2]).view("<f2").astype(np.float32)  # (n, 1)
    packed = rows[:, 2:]  # (n, 16)
    levels = np.concatenate([packed & 15, packed >> 4], axis=1)  # (n, 32) uint8
    return d * (levels.astype(np.float32) - 8)


def oracle(raw):
    """One block at a time, one weight at a time."""
    found = []
    for start in range(0, len(raw), 18):
        (d,) = struct.unpack_from("<e", raw, start)
        packed = raw[start + 2 : start + 18]
        found.append([d * (byte % 16 - 8) for byte in packed] + [d * (byte // 16 - 8) for byte in packed])
    return np.array(found, np.float32)


def cases(random):
    """Every level with a positive scale and a negative one, two blocks, zeros, large and small scales, then random blocks."""
    ramp = bytes(j + 16 * (15 - j) for j in range(16))
    made = [
        np.float16(1).tobytes() + ramp,
        np.float16(-0.5).tobytes() + ramp,
        np.float16(1).tobytes() + bytes(range(16)) + bytes(2) + ramp + np.float16(2).tobytes() + bytes(range(15, 256, 16)),  # d is 0 in between
        bytes(18),
        bytes(18) + np.float16(30000).tobytes() + ramp + np.float16(2e-7).tobytes() + ramp,  # float16 cannot hold 240000, and 2e-7 only coarsely
        np.float16(0.1).tobytes() + ramp,
    ]
    drawn = b"".join(
        d.tobytes() + random.integers(0, 256, 16, np.uint8).tobytes() for d in random.normal(0, 1, 5).astype("<f2")
    )
    return [(raw,) for raw in [*made, drawn]]


EXERCISE = Exercise(
    goal="Turn blocks of Q4_0 back into weights: d × (level - 8), the low nibbles first, then the high ones.",
    reference=decode_q4_0, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        "A block is a row of 18 bytes: two columns are d, the other sixteen the packed levels. A byte gives two levels, and these belong to different halves of the block.",
        "`np.frombuffer` and `reshape` make the rows. `np.ascontiguousarray` comes before `view`. `np.concatenate` joins low and high nibbles; they are uint8, which has no negative numbers.",
    ),
    why="these five operations are all that a program needs to read a Q4_0 matrix of any file.",
    mistakes=(
        Mistake("neighbours in one byte", edit(
                "np.concatenate([packed & 15, packed >> 4], axis=1)",
                "np.stack([packed & 15, packed >> 4], axis=2).reshape(-1, 32)",
            ),
            cause="The two nibbles of a byte were taken for neighbours, as in GGUF-lite.",
            cure="All 16 low nibbles come first, then all 16 high ones.", see="the right numbers in the wrong places"),
        Mistake("halves exchanged", edit("packed & 15, packed >> 4", "packed >> 4, packed & 15"),
            cause="The high nibbles came first.",
            cure="Put the low nibbles in front.", see="the two halves of each block exchanged"),
        Mistake("two's complement",
            edit("(levels.astype(np.float32) - 8)", "np.where(levels >= 8, levels.astype(np.float32) - 16, levels)"),
            cause="8 to 15 were read as negative, as in GGUF-lite, and a level of Q4_0 is stored plus 8.",
            cure="Subtract 8 from every level.", see="0 where -8 × d is expected"),
        Mistake("no 8 subtracted", edit("(levels.astype(np.float32) - 8)", "levels"),
            cause="The levels 0 to 15 stand for -8 to 7.",
            cure="Subtract 8 from every level.", see="every weight with the sign of d"),
        Mistake("7.5 subtracted", edit("- 8)", "- 7.5)"),
            cause="The middle of 0 to 15 is 7.5, but zero must stay zero: its level is 8.",
            cure="Subtract 8.", see="every weight off by half of d"),
        Mistake("subtracted in uint8", edit("levels.astype(np.float32) - 8", "levels - np.uint8(8)"),
            cause="A uint8 has no negative numbers: 3 - 8 becomes 251.",
            cure="Convert to float32 or int8 before you subtract.", see="weights around 250 × d"),
        Mistake("computed in float16", edit('.view("<f2").astype(np.float32)', '.view("<f2")').edit(
                "levels.astype(np.float32)", "levels.astype(np.int8)"
            ),
            cause="d was left a float16, and so is everything that it is multiplied by.",
            cure="Convert d with `.astype(np.float32)`.", see="the right numbers as float16"),
        Mistake("the scale after the values",
            edit("rows[:, :2]", "rows[:, 16:]").edit("rows[:, 2:]", "rows[:, :16]"),
            cause="d was read from the last two bytes of each block.",
            cure="It is in the first two.", see="every weight another"),
        Mistake("all scales first", edit(
                'np.ascontiguousarray(rows[:, :2]).view("<f2")', 'np.frombuffer(raw, "<f2", count=len(rows))[:, None]'
            ).edit("rows[:, 2:]", "np.frombuffer(raw, np.uint8, offset=2 * len(rows)).reshape(-1, 16)"),
            cause="The scales were taken from the front of the bytes, as in GGUF-lite.",
            cure="Each block of 18 bytes begins with its own.", see="right for one block, wrong for more"),
    ),
)
