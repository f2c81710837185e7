"""Four bits: blocks of Q4_0."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.by_hand import nearest32
from .toys import block_fields, filled


def encode_q4_0(w):
    """Blocks of Q4_0.

    w: (n, 32) float32, finite, a block in each row; no d is too large for
        float16, and no 1 / d for float32, unless d is 0
    ->   n × 18 bytes: d = extreme / -8 as float16, then 16 bytes, byte j
         with level j in its low and level j + 16 in its high nibble; a
         level is w × (1 / d) + 8.5, where this d is not rounded to float16
         and all is float32, cut off, at most 15; of two extremes of the
         same size the first counts; a block of 32 times 0.0 has d = 0 / -8
         = -0.0, the bytes 00 80, and levels 8; d is little-endian
    """
    at = np.abs(w).argmax(axis=1, keepdims=True)  # the first one of the largest
    d = np.take_along_axis(w, at, axis=1) / np.float32(-8)  # (n, 1) float32, of either sign
    factor = np.where(d == 0, np.float32(0), 1 / np.where(d == 0, np.float32(1), d))
    q = np.minimum((w * factor + np.float32(8.5)).astype(np.uint8), 15)  # (n, 32)
    packed = q[:, :16] | q[:, 16:] << 4  # (n, 16)
    return np.concatenate([d.astype("<f2").view(np.uint8), packed], axis=1).tobytes()


def oracle(w):
    """One block at a time, one byte at a time."""
    out = b""
    for block in w.tolist():
        extreme = 0.0
        for x in block:
            if abs(x) > abs(extreme):
                extreme = x
        d = nearest32(extreme / -8)
        factor = nearest32(1 / d) if d else 0.0
        levels = [min(15, int(nearest32(nearest32(x * factor) + 8.5))) for x in block]
        out += struct.pack("<e", d) + bytes(levels[j] + 16 * levels[j + 16] for j in range(16))
    return out


def cases(random):
    """Every level, both signs of the extreme, halves, zeros, numbers close to a half, then random weights."""
    ramp = np.arange(32) // 2 - 8.0  # -8, -8, -7, … 7, 7: d is 1
    made = [
        [ramp],
        [-ramp],
        [filled(-8, 8, 7.5, 0.5, -0.5, 1.5, 2.5)],
        [filled()],  # 0 / -8 is -0.0
        [[3, 2] * 7 + [8, -8] * 9],  # a sort that is not stable finds another one first
        [ramp, 2000 * ramp[::-1], filled(), np.roll(ramp, 5)],
        [filled(), filled(0.9, 0.84375), filled(1.3, 1.21875), filled()],  # x * (1 / d) and x / d fall on two sides of a half
        [filled(-8, -0.50000006, 0.49999997, 1.4999999)],  # in float32, plus 8.5, these are 8, 9 and 10
        [filled(-8e-9, 4e-9, 7e-9), filled(4e-30, 8e-30, -7e-30), filled(-8e-6, 3e-6)],  # d is 0, 0 or coarse as float16
    ]
    return [*((np.array(w, np.float32),) for w in made), (random.normal(0, 0.02, (24, 32)).astype(np.float32),)]


EXERCISE = Exercise(
    goal="Encode blocks of 32 weights as Q4_0: a float16 scale, then 16 bytes with one weight of each half.",
    reference=encode_q4_0, oracle=oracle, cases=cases, minutes=9, difficulty="core",
    fields=lambda w: block_fields(w, 16),
    hints=(
        "First find where the weight of largest size is, then take it with its sign. It becomes level 0, whatever its sign.",
        "`argmax` and `np.take_along_axis` find and take one number of each row, `astype(np.uint8)` cuts off, `np.minimum` sets the limit. `<<` moves levels to the high nibble, `|` joins.",
    ),
    why="18 bytes for 32 weights, the same 18 that ggml writes: 4.5 bits a weight.",
    mistakes=(
        Mistake("neighbours in one byte", edit("q[:, :16] | q[:, 16:] << 4", "q[:, 0::2] | q[:, 1::2] << 4"),
            cause="A byte holds two neighbours, as in GGUF-lite; in Q4_0 byte j holds weight j and weight j + 16.",
            cure="Pack the first half with the second: `q[:, :16] | q[:, 16:] << 4`.",
            see="scales right, values in the wrong order"),
        Mistake("halves exchanged", edit("q[:, :16] | q[:, 16:] << 4", "q[:, 16:] | q[:, :16] << 4"),
            cause="The first half of the block went to the high nibbles.",
            cure="Shift the second half, `q[:, 16:] << 4`.",
            see="scales right, and every byte of the values with its two digits exchanged"),
        Mistake("the sign of the extreme lost",
            edit("np.take_along_axis(w, at, axis=1)", "np.abs(w).max(axis=1, keepdims=True)"),
            cause="d was made from absmax, so it is always negative, and a block whose extreme is negative needs a positive one.",
            cure="Take the weight of largest size with its sign.",
            see="right where the extreme is positive, wrong where it is negative"),
        Mistake("the largest instead of the extreme",
            edit("np.take_along_axis(w, at, axis=1)", "w.max(axis=1, keepdims=True)"),
            cause="`w.max()` is the largest weight, and the one farthest from zero may be negative.",
            cure="Look for it in `np.abs(w)`, and take its signed value.",
            see="right where the extreme is positive, clipped values where it is negative"),
        Mistake("divided by 8 instead of -8", edit("np.float32(-8)", "np.float32(8)"),
            cause="The extreme must land on -8, the end of the range that has one level more.",
            cure="Divide it by -8.", see="the sign of every scale"),
        Mistake("four bits of GGUF-lite", body("""
                d = (np.abs(w).max(axis=1, keepdims=True) / np.float32(7)).astype("<f2")
                step = np.where(d == 0, np.float32(1), d.astype(np.float32))
                q = np.rint(w / step).clip(-7, 7).astype(np.int8).view(np.uint8) & 15
                return np.concatenate([d.view(np.uint8), q[:, 0::2] | q[:, 1::2] << 4], axis=1).tobytes()
            """),
            cause="That is GGUF-lite's group: absmax / 7, two's complement, neighbours in one byte.",
            cure="Follow the three steps above: the extreme over -8, plus 8.5 and cut off, halves.",
            see="every scale and every value another"),
        Mistake("no limit at 15", edit(
                "np.minimum((w * factor + np.float32(8.5)).astype(np.uint8), 15)",
                "(w * factor + np.float32(8.5)).astype(np.uint8)",
            ),
            cause="A weight that is as large as the extreme, with the other sign, gets level 16, which takes five bits and spills into its neighbour.",
            cure="Take `np.minimum(q, 15)` before you pack.", see="a nibble 0 where f is expected"),
        Mistake("rounded half to even", edit("(w * factor + np.float32(8.5))", "(np.rint(w * factor) + 8)"),
            cause="`np.rint` takes a half to the even side, and cutting off after adding 8.5 always takes it up.",
            cure="Add 8.5 and convert to uint8.", see="a value one off where the weight is exactly half of d"),
        Mistake("8.5 added in float64", edit("w * factor + np.float32(8.5)", "(w * factor).astype(np.float64) + 8.5"),
            cause="The sum with 8.5 was computed in float64, and float32 rounds it: -0.50000006 + 8.5 is 8 there.",
            cure="Add `np.float32(8.5)` to the float32 product.", see="nearly everything right, and a single value one too small"),
        Mistake("cut off without the half", edit("8.5", "8"),
            cause="Adding 8 and converting cuts off; the further half makes it round.",
            cure="Add 8.5.", see="about half of the values one too small"),
        Mistake("two's complement", edit(
                "np.minimum((w * factor + np.float32(8.5)).astype(np.uint8), 15)",
                "np.floor(w * factor + np.float32(0.5)).clip(-8, 7).astype(np.int8).view(np.uint8) & 15",
            ),
            cause="The levels were kept signed, and Q4_0 stores each plus 8.",
            cure="Add 8.5 before you convert, so that 0 becomes 8.", see="`00` where a block of zeros has `88`"),
        Mistake("the scale rounded first",
            edit("    factor =", "    d = d.astype(np.float16).astype(np.float32)\n    factor ="),
            cause="You divided by the scale as float16 will hold it; that is GGUF-lite's rule, and ggml does not follow it.",
            cure="Compute the values with the float32 scale, and round it only when you store it.",
            see="scales right, and a value here and there off by one"),
        Mistake("divided by d", edit("w * factor", "w / np.where(d == 0, np.float32(1), d)"),
            cause="`w / d` rounds once, `w * (1 / d)` twice, so a weight near a half may land on the other side.",
            cure="Compute `1 / d` in float32 and multiply by it.",
            see="nearly everything right, and a single value off by one"),
        Mistake("scales first", edit(
                'np.concatenate([d.astype("<f2").view(np.uint8), packed], axis=1).tobytes()',
                'd.astype("<f2").tobytes() + packed.tobytes()',
            ),
            cause="All scales come first, as in GGUF-lite, and here each block carries its own.",
            cure="Join each scale with its 16 bytes, block by block.",
            see="right for one block, wrong from the third byte on for more"),
    ),
)
