"""Eight bits: blocks of Q8_0."""

import math
import struct

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest32
from .toys import block_fields, filled


def encode_q8_0(w):
    """Blocks of Q8_0.

    w: (n, 32) float32, finite, a block in each row; no d is too large for
        float16, and no 1 / d for float32, unless d is 0
    ->   n × 34 bytes: d = absmax / 127 as float16, then 32 int8 values: w ×
         (1 / d), where this d is not rounded to float16 and all is float32,
         rounded half away from zero; a block of zeros has d 0 and values 0;
         d is little-endian
    """
    d = np.abs(w).max(axis=1, keepdims=True) / np.float32(127)  # (n, 1) float32
    factor = np.where(d == 0, np.float32(0), 1 / np.where(d == 0, np.float32(1), d))
    x = w * factor
    whole = np.trunc(x)
    q = (whole + np.trunc(2 * (x - whole))).astype(np.int8)  # (n, 32)
    return np.concatenate([d.astype("<f2").view(np.uint8), q.view(np.uint8)], axis=1).tobytes()  # (n, 2 + 32)


def oracle(w):
    """One block at a time, one number at a time."""
    out = b""
    for block in w.tolist():
        d = nearest32(max(abs(x) for x in block) / 127)
        inverse = nearest32(1 / d) if d else 0.0
        out += struct.pack("<e", d)
        for x in block:
            size = abs(nearest32(x * inverse))
            q = math.floor(size) + (size - math.floor(size) >= 0.5)  # half away from zero
            out += struct.pack("<b", q if x * inverse > 0 else -q)
    return out


def cases(random):
    """Scales of 1, halves of both signs, zeros, numbers close to a half, a scale that float16 cannot hold, then random weights."""
    ramp = np.arange(32) - 16.0
    made = [
        [np.concatenate([[127], np.arange(31)])],  # d is 1
        [filled(127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5)],
        [filled(-0.0)],
        [np.concatenate([[-127], np.arange(31)]), filled(), 2000 * np.concatenate([[127], np.arange(31)])],  # zeros in between
        [filled(0.1, 0.1 * 175 / 254, -0.1 * 199 / 254), filled(0.87, 0.87 * 3 / 254)],  # x * (1 / d) and x / d fall on two sides of a half
        [filled(127.05, 2.5004, -3.5004)],  # d is 1.0004, which float16 rounds to 1
        [filled(1e-6, 5e-7, -3e-8)],  # d is 0 as float16, and 1 / d is not
        [filled(1.8, 0.9, -0.9)],  # w * (1 / d) is 63.5 in float32, and less than that in float64
        [filled(4e-31, 1e-30, -2e-31)],  # the squares are 0 in float32
        [filled(), ramp, ramp / 10, filled()],
    ]
    below = [np.nextafter(np.float32(half), np.float32(0)) for half in (0.5, 1.5, 7.5)]  # one step of float32 below a half
    made += [[filled(127, *below, *(-x for x in below))], [filled(-4e-4, 1e-4, 4e-6)]]  # and a d below the normal numbers of float16
    return [*((np.array(w, np.float32),) for w in made), (random.normal(0, 0.02, (40, 32)).astype(np.float32),)]


EXERCISE = Exercise(
    goal="Encode blocks of 32 weights as Q8_0: a float16 scale, then 32 signed bytes, block after block.",
    reference=encode_q8_0, oracle=oracle, cases=cases, minutes=7, difficulty="core",
    fields=lambda w: block_fields(w, 32),
    hints=(
        "Keep two versions of d: the unrounded one for the arithmetic, the float16 one for the file. A block of zeros has no inverse of d: take 0 for it.",
        "`np.trunc` splits a number into its whole part and the rest; twice the rest, cut off again, is -1, 0 or 1. `np.where` avoids a division by zero. `view` as uint8 and `np.concatenate` along axis 1 put each d before its values.",
    ),
    why="these are the bytes that ggml itself writes, to the last bit.",
    mistakes=(
        Mistake("scales first", edit(
                'np.concatenate([d.astype("<f2").view(np.uint8), q.view(np.uint8)], axis=1).tobytes()',
                'd.astype("<f2").tobytes() + q.tobytes()',
            ),
            cause="All scales come first, as in GGUF-lite, and here each block carries its own.",
            cure="Join each scale with its 32 values, block by block.",
            see="right for one block, wrong from the third byte on for more"),
        Mistake("values before the scale", edit(
                '[d.astype("<f2").view(np.uint8), q.view(np.uint8)]',
                '[q.view(np.uint8), d.astype("<f2").view(np.uint8)]',
            ),
            cause="Each block begins with its values, and d belongs before them.",
            cure="Write d first.", see="values in the first two bytes"),
        Mistake("rounded half to even", edit("whole + np.trunc(2 * (x - whole))", "np.rint(x)"),
            cause="`np.rint` takes 0.5 to 0 and 2.5 to 2, and C's `roundf`, which ggml uses, takes them to 1 and 3.",
            cure="Round half away from zero: cut off, then look at the rest.", see="a 0 where the weight is exactly half of d"),
        Mistake("halves rounded up", edit("whole + np.trunc(2 * (x - whole))", "np.floor(x + np.float32(0.5))"),
            cause="`np.floor(x + 0.5)` takes -0.5 to 0, and C's `roundf`, which ggml uses, takes it to -1.",
            cure="Round half away from zero: cut off, then look at the rest.",
            see="right for positive weights, and a 0 where a weight is exactly minus half of d"),
        Mistake("a half added in float32", edit("whole + np.trunc(2 * (x - whole))", "np.sign(x) * np.floor(np.abs(x) + np.float32(0.5))"),
            cause="The sum of |x| and 0.5 is rounded to float32: 0.49999997 + 0.5 is 1 there, and 0.49999997 is below a half.",
            cure="Cut off, then look at the rest; no sum is rounded then.",
            see="a 1 where a value is a last digit below one half"),
        Mistake("multiplied in float64", edit("x = w * factor", "x = w.astype(np.float64) * factor"),
            cause="The product w × (1 / d) was computed in float64, and float32 rounds it, sometimes to a half.",
            cure="Multiply float32 by float32.", see="nearly everything right, and a single value off by one"),
        Mistake("cut off instead of rounded", edit("(whole + np.trunc(2 * (x - whole)))", "x"),
            cause="`astype(np.int8)` drops the digits after the point.",
            cure="Round before you convert.", see="values one too small in size, about half of them"),
        Mistake("the scale rounded first",
            edit("    factor =", "    d = d.astype(np.float16).astype(np.float32)\n    factor ="),
            cause="You divided by the scale as float16 will hold it; that is GGUF-lite's rule, and ggml does not follow it.",
            cure="Compute the values with the float32 scale, and round it only when you store it.",
            see="scales right, and a value here and there off by one"),
        Mistake("divided by d", edit("w * factor", "w / np.where(d == 0, np.float32(1), d)"),
            cause="`w / d` rounds once, `w * (1 / d)` twice, so a weight near a half may land on the other side.",
            cure="Compute `1 / d` in float32 and multiply by it.",
            see="nearly everything right, and a single value off by one"),
        Mistake("one scale for all blocks",
            edit("max(axis=1, keepdims=True)", "max(keepdims=True).repeat(len(w), axis=0)"),
            cause="The maximum was taken over all blocks.",
            cure="Take it along the last axis, `np.abs(w).max(axis=1, keepdims=True)`.",
            see="right for one block, the same scale in all blocks for more"),
        Mistake("float32 scales", edit("<f2", "<f4"),
            cause="Each scale takes four bytes, and a block gives it two.",
            cure='Convert with `.astype("<f2")`.', see="36 bytes for a block where 34 are expected"),
        Mistake("unsigned values", edit("q.view(np.uint8)", "q.view(np.uint8) + np.uint8(128)"),
            cause="128 was added to every value; Q8_0 keeps two's complement.",
            cure="Convert to int8 and add nothing.", see="`80` where zeros are expected"),
        Mistake("divided by 128",
            edit("np.float32(127)", "np.float32(128)").edit(".astype(np.int8)", ".clip(-128, 127).astype(np.int8)"),
            cause="The largest weight must land on 127, so that -127 exists too.",
            cure="Divide absmax by 127.", see="every scale too small"),
    ),
)
