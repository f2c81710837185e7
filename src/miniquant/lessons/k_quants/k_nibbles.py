"""The 256 integers of a super-block of Q4_K."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit


def k_nibbles(qs):
    """The integers of a super-block of Q4_K.

    qs: (128,) uint8
    ->   (8, 32) uint8 from 0 to 15, a row for each sub-block
    """
    runs = qs.reshape(4, 32)
    return np.stack([runs & 15, runs >> 4], axis=1).reshape(8, 32)


def oracle(qs):
    """Weight by weight: in which byte, and in which half of it."""
    rows = []
    for sub in range(8):
        run = 32 * (sub // 2)
        rows.append([int(qs[run + i]) // 16 if sub % 2 else int(qs[run + i]) % 16 for i in range(32)])
    return np.array(rows, np.uint8)


def cases(random):
    """Runs that can be told apart, a ramp, then random bytes."""
    ramp = np.array([i % 16 | (15 - i % 16) << 4 for i in range(128)], np.uint8)
    runs = np.repeat(np.array([0x10, 0x32, 0x54, 0x76], np.uint8), 32)
    return [(runs,), (ramp,), *((random.integers(0, 256, 128, np.uint8),) for _ in range(2))]


EXERCISE = Exercise(
    goal="Take the 256 integers out of 128 bytes, one row for each sub-block.",
    reference=k_nibbles, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        "Cut the bytes into four runs of 32. The low nibbles of run 0 are sub-block 0, its high nibbles sub-block 1.",
        "`np.stack` with `axis=1` puts the low and the high nibbles of each run side by side; a `reshape` to (8, 32) then reads them in order.",
    ),
    why="32 bytes are loaded at once, masked once and shifted once: two sub-blocks without moving a byte.",
    mistakes=(
        Mistake("neighbours in one byte", body("return np.stack([qs & 15, qs >> 4], axis=1).reshape(8, 32)"),
            cause="Byte i was taken for weights 2i and 2i + 1. The weights of a byte lie 32 apart.",
            cure="Take runs of 32 bytes: low nibbles one sub-block, high nibbles the next.",
            see="the right numbers in another order: in row 0 the nibbles of 16 bytes"),
        Mistake("halves of 16 bytes", edit("reshape(4, 32)", "reshape(8, 16)"),
            cause="That is Q4_0's rule, 16 low nibbles and then 16 high ones.",
            cure="A run of Q4_K has 32 bytes.", see="the first half of row 0 right, the second half from high nibbles"),
        Mistake("all low nibbles first", edit("reshape(4, 32)", "reshape(1, 128)"),
            cause="The low nibbles of all 128 bytes came before the first high one.",
            cure="Go run by run: 32 low ones, 32 high ones, then the next run.",
            see="row 0 right, row 1 from the next run"),
        Mistake("halves of 64 bytes", edit("reshape(4, 32)", "reshape(2, 64)"),
            cause="The runs were 64 bytes long, as those of Q6_K's ql are.",
            cure="A run of Q4_K has 32 bytes.",
            see="row 0 right, row 1 from the next run, row 2 from the high nibbles of the first"),
        Mistake("high nibbles first", edit("[runs & 15, runs >> 4]", "[runs >> 4, runs & 15]"),
            cause="The high nibbles came first.",
            cure="Put the low ones in front.", see="each pair of rows exchanged"),
        Mistake("no mask", edit("runs & 15", "runs"),
            cause="The low nibble still has the high one above it.",
            cure="Mask with 15.", see="numbers above 15 in the even rows"),
        Mistake("rows and columns exchanged", edit(".reshape(8, 32)", ".reshape(32, 8).T.copy()"),
            cause="The 256 integers were laid out down the columns.",
            cure="Reshape to (8, 32) without a transpose.", see="the right numbers, eight apart"),
    ),
)
