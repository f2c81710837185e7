"""Super-blocks of Q6_K as weights."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit


def decode_q6_k(raw):
    """Weights from super-blocks of Q6_K.

    raw: n × 210 bytes, each 128 of ql, 64 of qh, 16 of scales, 2 of d   ->   (n, 256) float32
    """
    rows = np.frombuffer(raw, np.uint8).reshape(-1, 210)
    ql = rows[:, :128].reshape(-1, 2, 2, 32)  # (n, halves, runs of 32 bytes, bytes)
    low = np.concatenate([ql & 15, ql >> 4], axis=2)  # (n, 2, 4, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]
    high = rows[:, 128:192].reshape(-1, 2, 1, 32) >> shifts & 3  # (n, 2, 4, 32)
    q = (low | high << 4).reshape(-1, 16, 16).astype(np.float32) - 32  # (n, sub-blocks, weights)
    scales = rows[:, 192:208].view(np.int8).astype(np.float32)  # (n, 16)
    d = np.ascontiguousarray(rows[:, 208:]).view("<f2").astype(np.float32)  # (n, 1)
    return ((d * scales)[:, :, None] * q).reshape(-1, 256)


def oracle(raw):
    """One weight at a time, in Python's own arithmetic."""
    found = []
    for start in range(0, len(raw), 210):
        ql, qh = raw[start : start + 128], raw[start + 128 : start + 192]
        scales = struct.unpack_from("<16b", raw, start + 192)
        (d,) = struct.unpack_from("<e", raw, start + 208)
        row = []
        for i in range(256):
            half, rest = divmod(i, 128)
            quarter, place = divmod(rest, 32)
            byte = ql[64 * half + 32 * (quarter % 2) + place]
            low = byte >> 4 if quarter >= 2 else byte & 15
            high = qh[32 * half + place] >> 2 * quarter & 3
            row.append(d * scales[i // 16] * (low + 16 * high - 32))
        found.append(row)
    return np.array(found, np.float32)


def _made(ql, qh, scales, d):
    return ql + qh + struct.pack("<16be", *scales, d)


def cases(random):
    """Upper bits that are equal, others, scales of both signs, then random super-blocks."""
    ramp = bytes(i % 16 | (15 - i % 16) << 4 for i in range(128))
    high = bytes([0b11100100] * 32 + [0b00011011] * 32)
    made = [
        _made(ramp, b"\xaa" * 64, [1] * 16, 1 / 64),  # the upper bits are 2 everywhere: q is the low nibble
        _made(ramp, high, [1] * 16, 1 / 64),
        _made(ramp[::-1], high[::-1], list(range(1, 17)), 1 / 128),
        _made(ramp, high, [-8, 7, -6, 5, -4, 3, -2, 1] * 2, -1 / 128),
    ]
    drawn = b"".join(
        _made(random.bytes(128), random.bytes(64), random.integers(-128, 128, 16).tolist(), d)
        for d in random.uniform(0, 0.001, 4).tolist()
    )
    return [(raw,) for raw in [*made, drawn]]


EXERCISE = Exercise(
    goal="Turn super-blocks of Q6_K into weights: d × scale × (q - 32), with q in two pieces.",
    reference=decode_q6_k, oracle=oracle, cases=cases, minutes=9, difficulty="core", tolerance=2e-6,
    hints=(
        "Each half, 128 weights, has 64 bytes of ql and 32 of qh. Its four quarters of 32 weights: low nibbles of ql[0:32], of ql[32:64], then the high nibbles of the same; bits 0-1, 2-3, 4-5 and 6-7 of qh.",
        "Give ql the shape (n, 2, 2, 32): block, half, run, weight. Low and high nibbles joined along axis 2 are then the four quarters. For qh shift by an array of 0, 2, 4 and 6 that `[:, None]` turns into a column.",
    ),
    why="with q from -32 to 31 and sixteen scales, this is what K-quants give to the tensors that hurt most.",
    mistakes=(
        Mistake("no 32 subtracted", edit(".astype(np.float32) - 32", ".astype(np.float32)"),
            cause="q is stored plus 32, so that it needs no sign.",
            cure="Subtract 32.", see="every weight with the sign of its scale"),
        Mistake("scales read unsigned", edit(".view(np.int8)", ""),
            cause="A scale of -1 was read as 255.",
            cure="View the sixteen bytes as int8.", see="right where the scales are positive"),
        Mistake("the upper bits forgotten", edit("(low | high << 4)", "low"),
            cause="q was taken from ql alone.",
            cure="Add the two bits of qh, shifted by 4.", see="no weight above -16 steps"),
        Mistake("the upper bits not moved up", edit("high << 4", "high"),
            cause="The two bits of qh fell on the lower four.",
            cure="Shift them by 4.", see="no weight above -16 steps, and some low bits lost"),
        Mistake("the upper bits from the top", edit("[0, 2, 4, 6]", "[6, 4, 2, 0]"),
            cause="The first quarter took the highest two bits of qh.",
            cure="It takes the lowest two: shifts 0, 2, 4, 6.", see="right where the upper bits are equal"),
        Mistake("runs of 32", edit(
                "np.concatenate([ql & 15, ql >> 4], axis=2)",
                "np.stack([ql & 15, ql >> 4], axis=3).reshape(-1, 2, 4, 32)",
            ),
            cause="ql was cut as Q4_K's nibbles are: 32 low ones, 32 high ones.",
            cure="In Q6_K 64 low nibbles come first, then the 64 high ones.",
            see="the first 32 weights of each half right, the second and third 32 exchanged"),
        Mistake("neighbours in one byte", edit(
                "np.concatenate([ql & 15, ql >> 4], axis=2)",
                "np.stack([ql & 15, ql >> 4], axis=4).reshape(-1, 2, 4, 32)",
            ),
            cause="Byte i of ql was taken for weights 2i and 2i + 1.",
            cure="Take runs of 64 bytes: low nibbles first, then the high ones.", see="almost every weight another"),
        Mistake("sub-blocks of 32", edit("(d * scales)", "(d * np.repeat(scales[:, :8], 2, axis=1))"),
            cause="A scale was used for 32 weights, as in Q4_K; there are sixteen scales.",
            cure="Repeat each scale 16 times.", see="the first 16 weights right"),
        Mistake("d at the start", edit("rows[:, 208:]", "rows[:, :2]")
            .edit(
                "rows = np.frombuffer(raw, np.uint8).reshape(-1, 210)\n",
                "rows = np.frombuffer(raw, np.uint8).reshape(-1, 210)\n    rows = np.concatenate([rows[:, 2:], rows[:, :2]], axis=1)\n",
            )
            .edit("rows[:, :2])", "rows[:, 208:])"),
            cause="d was read from the first two bytes, and everything else after it; Q6_K ends with its d.",
            cure="Read it from bytes 208 and 209.", see="every weight another"),
        Mistake("subtracted in uint8", edit(".astype(np.float32) - 32", " - np.uint8(32)"),
            cause="A uint8 has no negative numbers: 3 - 32 becomes 227.",
            cure="Convert to float32 or int8 before you subtract.", see="weights of over 200 steps"),
    ),
)
