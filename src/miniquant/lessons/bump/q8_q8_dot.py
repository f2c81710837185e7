"""A dot product of blocks with blocks: integers inside, as on a processor that runs ggml."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, body, edit


def q8_q8_dot(a, b):
    """The product of two rows of Q8_0 blocks, with integers inside the
    blocks.

    a, b: (n, 34) uint8, each block a little-endian float16 d and 32 signed
        bytes
    ->   a number: in each pair of blocks the 32 products of bytes, added up
         without loss, times both scales; the pairs added; right to 1e-5
    """
    total = 0.0
    for one, other in zip(a, b):
        d, e = (float(block[:2].view("<f2")[0]) for block in (one, other))
        p, q = (block[2:].view(np.int8).astype(np.int32) for block in (one, other))
        total += d * e * int(p @ q)
    return total


def oracle(a, b):
    """One byte after another, with struct."""
    total = 0.0
    for one, other in zip(a.tolist(), b.tolist()):
        d, *p = struct.unpack("<e32b", bytes(one))
        e, *q = struct.unpack("<e32b", bytes(other))
        whole = 0
        for x, y in zip(p, q):
            whole += x * y
        total += whole * e * d
    return total


def _block(d, q):
    return list(struct.pack("<e32b", d, *q, *[0] * (32 - len(q))))


def cases(random):
    """One pair, large sums, two pairs, small scales, scales of 0 before others, subnormal scales, then random blocks."""
    made = [
        ([_block(0.5, [4, 2])], [_block(2.0, [1, 3])]),
        ([_block(1.0009765625, [127] * 32)], [_block(0.99951171875, [127] * 32)]),
        ([_block(0.5, [-1, -128])], [_block(0.25, [100, 7])]),
        ([_block(1.0, [1, 2, 3]), _block(0.25, [100, -60])], [_block(0.5, [4, 4]), _block(4.0, [1, 2])]),
        ([_block(0.0005, [100] * 32)], [_block(0.0007, [90] * 32)]),
        ([_block(0.0, []), _block(1.0, [5]), _block(0.5, [4])], [_block(1.0, [9]), _block(0.0, [7]), _block(2.0, [3])]),
        ([_block(2**-24, [-128] * 32)], [_block(-30000.0, [-128] * 32)]),
        ([_block(3 * 2**-17, [100])], [_block(1.0, [120])]),
    ]
    cases = [tuple(np.array(blocks, np.uint8) for blocks in pair) for pair in made]
    for n in (3, 8):
        pair = []
        for _ in "ab":
            d, q = random.normal(0, 0.02, n).tolist(), random.integers(-127, 128, (n, 32)).tolist()
            pair.append(np.array([_block(*parts) for parts in zip(d, q)], np.uint8))
        cases.append(tuple(pair))
    return cases


EXERCISE = Exercise(
    goal="Multiply two rows of Q8_0 blocks: an integer sum in each pair of blocks, then both scales.",
    reference=q8_q8_dot, oracle=oracle, cases=cases, minutes=6, difficulty="core", tolerance=1e-5,
    hints=(
        "A product of two weights is d · q · e · p. In one pair of blocks d and e are the same for all 32 products, so both can wait: add up the products of bytes first.",
        "`view` reads the bytes as in `q8_dot`. 32 products of up to 128 × 128 need more than 16 bits: `astype(np.int32)` before you multiply. A float16 times a float16 is a float16: `float` first.",
    ),
    why="a processor multiplies bytes many at a time; only two scales a block are floats.",
    mistakes=(
        Mistake("added up in int8", edit("astype(np.int32)", "astype(np.int8)"),
            cause="The products and their sum stayed int8, where 127 is the largest number.",
            cure="Convert both to int32 before you multiply.",
            see="32 where 516,128 is expected"),
        Mistake("added up in int16", edit("astype(np.int32)", "astype(np.int16)"),
            cause="Each product fits into 16 bits, and the sum of 32 of them does not.",
            cure="Convert both to int32 before you multiply.",
            see="-8,160 where 516,128 is expected"),
        Mistake("unsigned bytes", edit("view(np.int8)", "view(np.uint8)"),
            cause="The bytes were read as 0 to 255, and half of them are negative.",
            cure="View them as int8.",
            see="right where all bytes are positive, much too large elsewhere"),
        Mistake("one scale", edit("d * e * int", "d * int"),
            cause="Only the scale of the first row was applied.",
            cure="Multiply by both scales.",
            see="5 where 10 is expected"),
        Mistake("the scales added", edit("d * e * int", "(d + e) * int"),
            cause="The two scales were added, and each of them multiplies.",
            cure="Multiply by both.",
            see="25 where 10 is expected"),
        Mistake("no scales", edit("d * e * int(p @ q)", "int(p @ q)"),
            cause="The integers were added up, and no scale was applied.",
            cure="Multiply each block's sum by both of its scales.",
            see="whole numbers everywhere; right where both scales are 1"),
        Mistake("the first scales for all blocks", edit("(one, other))\n        p", "(a[0], b[0]))\n        p"),
            cause="The scales of the first pair were taken for all pairs.",
            cure="Take the scales of each pair.",
            see="-4 where -14 is expected"),
        Mistake("all blocks at once", body("""
                d, e = (rows[:, :2].copy().view("<f2").astype(np.float32) for rows in (a, b))
                p, q = (rows[:, 2:].view(np.int8).astype(np.int32) for rows in (a, b))
                return float((d * e).sum() * (p * q).sum())
            """),
            cause="The integers of all pairs were added up first, and then multiplied by the sum of all scales.",
            cure="Finish each pair, with its own scales, before you add it to the total.",
            see="right for one pair, -12 where -14 is expected"),
        Mistake("only the last pair", edit("total +=", "total ="),
            cause="The total was overwritten by each pair.",
            cure="Add to it: `total += ...`.",
            see="-20 where -14 is expected"),
        Mistake("scales multiplied as float16",
            edit('float(block[:2].view("<f2")[0])', 'block[:2].view("<f2")[0]').edit("total += d * e *", "total += float(d * e) *"),
            cause="The product of two float16 was rounded to float16, and a small one keeps few digits.",
            cure="Make a `float` of each scale first.",
            see="right where the scales are powers of two, off by up to some percent where they are small"),
    ),
)
