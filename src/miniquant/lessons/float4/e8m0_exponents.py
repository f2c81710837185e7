"""The scale of a block of MXFP4: a power of two, of which only the exponent is stored."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit


def e8m0_exponents(w):
    """The scale of each block of MXFP4, as the byte that is stored.

    w: (n, k) float32, a block in each row; each size is 0, or from 2**-100
        to 2**100; none is between 0.999999 × 2**k and 2**k, for any k
    ->   (n,) uint8: e of the scale 2**(e - 127) for which the largest size
         is at least 4 times and below 8 times the scale; 0 for a block of
         zeros
    """
    largest = np.abs(w).max(axis=1)  # (n,)
    exponent = np.floor(np.log2(np.where(largest > 0, largest, 1)))
    return np.where(largest > 0, exponent - 2 + 127, 0).astype(np.uint8)


def oracle(w):
    """Block by block: double or halve the scale until the largest size is in its place."""
    found = []
    for row in w.tolist():
        largest = max(abs(x) for x in row)
        e, scale = 127, 1.0
        while largest and largest >= 8 * scale:
            e, scale = e + 1, scale * 2
        while largest and largest < 4 * scale:
            e, scale = e - 1, scale / 2
        found.append(e if largest else 0)
    return np.array(found, np.uint8)


def cases(random):
    """A scale of 1, larger and smaller ones, a negative extreme, powers of two, zeros, several blocks, the smallest and the largest size, random ones."""
    made = [
        [[5, 1, -2, 0]],
        [[1, 0.5, -0.25, 0.75]],
        [[3, -40, 8, 1]],
        [[4, 2, 1, 0], [7.9, 0, 0, 0], [8, -1, 0, 3], [-6.5, 6, 2, 1]],
        [[0, 0, 0, 0]],
        [[0, -0.0, 0, 0], [0.03, -0.01, 0.02, 0.001], [-1e-20, 0, 0, 0], [1e20, -3e20, 0, 1]],
        [[-0.625], [2.0**-100], [-(2.0**100)]],
    ]
    w = random.normal(0, 0.05, (12, 32)) * np.exp2(random.integers(-20, 20, (12, 1)))
    return [*((np.array(w, np.float32),) for w in made), (w.astype(np.float32),)]


def quantities(w):
    """What students take in place of the exponent."""
    largest = [max(abs(x) for x in row) for row in w.tolist()]
    return {"the exponents without the 127": np.array([math.frexp(x)[1] - 3 for x in largest], np.int32)}


_FLOOR = "np.floor(np.log2(np.where(largest > 0, largest, 1)))"

EXERCISE = Exercise(
    goal="Choose a power of two as the scale of each block, and give the byte that stores its exponent.",
    reference=e8m0_exponents, oracle=oracle, cases=cases, minutes=7, difficulty="core",
    hints=(
        "The power of two at or below the largest size is the one that you look for; two steps below it is the scale. Blocks of zeros have no logarithm, so give them another number before, and their 0 at the end.",
        "`np.floor(np.log2(x))` is the exponent of the power of two at or below x. `np.where` can put a 1 in place of a largest size of 0.",
    ),
    why="one byte reaches from 2**-127 to 2**127, much farther than a float16, but in steps of a factor of two.",
    mistakes=(
        Mistake("the 127 forgotten", edit(" - 2 + 127", " - 2"),
            cause="The exponent itself was converted to uint8, where a negative one wraps around.",
            cure="Add 127.", see="0 for the scale 1, and 253 for the scale 1/8"),
        Mistake("the 2 forgotten", edit(" - 2 + 127", " + 127"),
            cause="The scale is the power of two at or below the largest size. Then it is used from 1 to below 2 times only, and most values of E2M1 are not used.",
            cure="Subtract 2: the largest value, 6, is between 2**2 and 2**3.", see="every byte too large by 2"),
        Mistake("a bias of 128", edit("127", "128"),
            cause="Every exponent is one too large, as with a bias of 128; the bias is 127.",
            cure="Add 127.", see="every byte too large by 1"),
        Mistake("rounded up", edit("np.floor(", "np.ceil("),
            cause="The logarithm was rounded up, so that the largest size is from 2 to 4 times the scale.",
            cure="Use `np.floor`.", see="one too large, and right for powers of two"),
        Mistake("rounded to the nearest", edit("np.floor(", "np.rint("),
            cause="The logarithm was rounded to the nearest integer.",
            cure="Use `np.floor`.", see="one too large for about half of the blocks"),
        Mistake("nothing cut off", edit("exponent - 2 + 127", "np.ceil(np.log2(np.where(largest > 0, largest, 1) / 6)) + 127"),
            cause="The scale was chosen so large that no weight is above 6 times the scale. A good idea, but another rule.",
            cure="Take the floor of the logarithm of the largest size, minus 2.", see="one too large where the largest size is between 6 and 8 times the scale"),
        Mistake("the exact scale, rounded down", edit("exponent - 2 + 127", "np.floor(np.log2(np.where(largest > 0, largest, 1) / 6)) + 127"),
            cause="The largest size was divided by 6 before the floor, so that it is from 6 to 12 times the scale.",
            cure="Take the floor of the logarithm of the largest size, minus 2.", see="one too small where the largest size is between 4 and 6 times the scale"),
        Mistake("the sign of the extreme", edit("np.abs(w).max(axis=1)", "w.max(axis=1)"),
            cause="The largest weight was taken, and the one of largest size may be negative.",
            cure="Take `np.abs(w)` first.", see="right where the weight of largest size is positive"),
        Mistake("one scale for all", edit("np.abs(w).max(axis=1)", "np.full(len(w), np.abs(w).max())"),
            cause="All blocks got the scale of the largest weight of all.",
            cure="Take the largest size of each row, `max(axis=1)`.", see="right for one block"),
        Mistake("the natural logarithm", edit("np.log2(", "np.log("),
            cause="`np.log` is the logarithm to the base e.",
            cure="Use `np.log2`.", see="wrong, and closer to 125 than expected"),
        Mistake("zeros as a weight of 1", edit("np.where(largest > 0, exponent - 2 + 127, 0)", "(exponent - 2 + 127)"),
            cause="A block of zeros got the scale of a block whose largest size is 1.",
            cure="Give it the byte 0 at the end.", see="125 for a block of zeros"),
        Mistake("the mean size", edit("np.abs(w).max(axis=1)", "np.abs(w).mean(axis=1)"),
            cause="The mean of the sizes was used.",
            cure="Take the largest one, `max`.", see="mostly too small, by 1 or 2"),
        Mistake("the scale itself", edit("np.where(largest > 0, exponent - 2 + 127, 0).astype(np.uint8)", "np.where(largest > 0, 2.0 ** (exponent - 2), 0).astype(np.float32)"),
            cause="The scales were returned, and the bytes that store them are asked for.",
            cure="Return the exponent plus 127, as uint8.", see="the dtype float32"),
        Mistake("int64", edit(".astype(np.uint8)", ".astype(np.int64)"),
            cause="The result is int64, and a byte is asked for.",
            cure="Convert with `.astype(np.uint8)`.", see="the dtype int64"),
    ),
)
