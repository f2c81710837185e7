"""Blocks of Q8_K, with their sums."""

import numpy as np

from ...lab import Exercise, Mistake, edit


def q8_k_parts(x):
    """Super-blocks of Q8_K, as their three parts.

    x: (blocks, 256) float32; no quotient of a number and its d is within
        0.001 of a half
    ->   d: (blocks,) float32, each right to 1e-6; q: (blocks, 256) int8;
         sums: (blocks, 16) int16. d is the extreme of the block, with its
         sign, / -127 (the extreme is the number of largest size, the first
         of several); q is the nearest integer to number / d, 0 for a block
         of zeros; a sum is that of 16 neighbouring q
    """
    at = np.abs(x).argmax(axis=1)[:, None]  # (blocks, 1)
    d = np.take_along_axis(x, at, axis=1) / np.float32(-127)
    q = np.rint(x / np.where(d != 0, d, 1)).astype(np.int8)
    sums = q.reshape(-1, 16, 16).sum(axis=2, dtype=np.int16)
    return d[:, 0], q, sums


def oracle(x):
    """One number at a time."""
    all_d, all_q, all_sums = [], [], []
    for block in x.tolist():
        extreme = max(block, key=abs)
        d = extreme / -127
        q = [round(number / d) if d else 0 for number in block]
        all_d.append(d)
        all_q.append(q)
        all_sums.append([sum(q[i : i + 16]) for i in range(0, 256, 16)])
    return np.array(all_d, np.float32), np.array(all_q, np.int8), np.array(all_sums, np.int16)


def cases(random):
    """Positive and negative extremes, zeros, a ramp, two of the same size, tiny numbers, several blocks, random ones."""

    def row(*numbers):
        return [*numbers, *[0] * (256 - len(numbers))]

    made = [
        [row(127, 5, -3)],
        [row(2, -127, 5, 1)],
        [row()],
        [[i / 2 + 0.1 for i in range(256)]],
        [row(*[0] * 30, -50, 20, 50), row(*[0] * 30, 50, 20, -50)],
        [row(1e-25, -12.7e-25, 3e-25)],  # their squares are 0 in float32
        [[127] * 256],
        [row(), row(1, 0.3), row(-12.7, 3.1), row(*[0] * 100, 3)],
    ]
    drawn = random.normal(0, 1, (300, 256)).astype(np.float32)
    at = np.abs(drawn).argmax(axis=1)[:, None]
    d = np.take_along_axis(drawn, at, axis=1) / np.float32(-127)
    clear = (np.abs((drawn / d) % 1 - 0.5) > 0.0015).all(axis=1)
    assert clear.sum() >= 4
    return [*((np.array(x, np.float32),) for x in made), (drawn[clear][:4],)]


_D = "np.take_along_axis(x, at, axis=1) / np.float32(-127)"
_SUMS = "q.reshape(-1, 16, 16).sum(axis=2, dtype=np.int16)"

EXERCISE = Exercise(
    goal="Round activations to super-blocks of Q8_K: one scale for 256 numbers, their integers, and sums of 16.",
    reference=q8_k_parts, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-6,
    hints=(
        "Find where the extreme of each block is, and take the number there, with its sign. The rest is as for Q8_1, with -127 in place of 127.",
        "`argmax` of the sizes gives the places and `np.take_along_axis` the numbers there; both want a column, `[:, None]`. `.reshape(-1, 16, 16)` cuts 256 integers into 16 runs of 16, and `.sum(axis=2, dtype=np.int16)` adds each run.",
    ),
    why="a scale of four bytes for 256 numbers, and sums of 16, because the smallest sub-block of a K-quant has 16 weights.",
    mistakes=(
        Mistake("divided by 127", edit("np.float32(-127)", "np.float32(127)"),
            cause="The extreme was divided by 127, so that it becomes 127 itself. ggml takes it to -127.",
            cure="Divide by -127.", see="every number right, but for its sign"),
        Mistake("divided by -128", edit("np.float32(-127)", "np.float32(-128)"),
            cause="The extreme was divided by -128. The integers of Q8_K go from -127 to 127.",
            cure="Divide by -127.", see="d too close to 0, and -128 for the extreme"),
        Mistake("the sign of the extreme lost", edit("np.take_along_axis(x, at, axis=1)", "np.abs(x).max(axis=1, keepdims=True)"),
            cause="The extreme lost its sign, so every d is below 0.",
            cure="Take the number itself, with its sign.", see="right where the extreme is above 0"),
        Mistake("the largest instead of the extreme", edit("np.abs(x).argmax(axis=1)", "x.argmax(axis=1)"),
            cause="The largest number was taken, and the number of largest size may be below 0.",
            cure="Look for the extreme in `np.abs(x)`.", see="right where the extreme is above 0"),
        Mistake("cut off", edit("np.rint(", "np.trunc("),
            cause="The digits after the point were cut off.",
            cure="Round, with `np.rint`.", see="integers that are too close to 0"),
        Mistake("sums of 32", edit(_SUMS, "q.reshape(-1, 8, 32).sum(axis=2, dtype=np.int16)"),
            cause="32 integers were added up; there is a sum for every 16.",
            cure="Cut the block into 16 runs of 16.", see="eight sums for each block"),
        Mistake("every sixteenth", edit("sum(axis=2,", "sum(axis=1,"),
            cause="Every sixteenth integer was added up, not 16 neighbours.",
            cure="Add along the last axis.", see="d and q right, sums right where all q are equal"),
        Mistake("sums of the numbers", edit(_SUMS, "x.reshape(-1, 16, 16).sum(axis=2).astype(np.int16)"),
            cause="The numbers themselves were added up, and the sums are those of the integers.",
            cure="Add up the q.", see="d and q right, other sums"),
        Mistake("sums in int8", edit(_SUMS, "q.reshape(-1, 16, 16).sum(axis=2, dtype=np.int8).astype(np.int16)"),
            cause="The integers were added up in int8, where sums wrap around beyond 127.",
            cure="Add up in int16.", see="small sums right, large ones wrong"),
        Mistake("sums times the scale", edit(_SUMS, f"np.rint({_SUMS} * d).astype(np.int16)"),
            cause="The sums were multiplied by d, as in Q8_1. Here they are sums of integers.",
            cure="Leave the scale out.", see="right where d is 1"),
        Mistake("sizes added up", edit("q.reshape(-1, 16, 16)", "np.abs(q).reshape(-1, 16, 16)"),
            cause="The sizes were added up, without their signs.",
            cure="Add up the integers as they are.", see="right where no integer is below 0"),
        Mistake("one scale for all blocks", edit(_D, "np.full((len(x), 1), x.ravel()[np.abs(x).argmax()]) / np.float32(-127)"),
            cause="All blocks were given the scale of the largest extreme.",
            cure="Each block has its own extreme.", see="right for one block"),
        Mistake("d as a column", edit("d[:, 0], q, sums", "d, q, sums"),
            cause="d has the shape (blocks, 1).",
            cure="Return one number for each block: (blocks,).", see="the right numbers in a column"),
        Mistake("int64 sums", edit("sum(axis=2, dtype=np.int16)", "sum(axis=2)"),
            cause="The sums are int64.",
            cure="Ask for int16 with `dtype=`.", see="another dtype for the sums"),
        Mistake("float64", edit("d[:, 0], q, sums", "d[:, 0].astype(np.float64), q, sums"),
            cause="d is float64.",
            cure="Keep float32.", see="the dtype float64 for d"),
    ),
)
