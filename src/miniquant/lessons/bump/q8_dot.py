"""A dot product with blocks that are never written down as floats."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit


def q8_dot(blocks, x):
    """One row of a Q8_0 matrix times a vector.

    blocks: (n, 34) uint8, each a little-endian float16 d and 32 signed
        bytes
    x: (32 n,) float32   ->   a number, right to 1e-5
    """
    total = 0.0
    for block, part in zip(blocks, x.reshape(-1, 32)):
        d = block[:2].view("<f2")[0].astype(np.float32)
        q = block[2:].view(np.int8).astype(np.float32)
        total += float(d) * float(q @ part)
    return total


def oracle(blocks, x):
    """One number after another, with struct."""
    total, numbers = 0.0, x.tolist()
    for index, block in enumerate(blocks):
        d, *q = struct.unpack("<e32b", block.tobytes())
        for place, value in enumerate(q):
            total += d * value * numbers[32 * index + place]
    return total


def _block(d, q):
    return list(struct.pack("<e32b", d, *q, *[0] * (32 - len(q))))


def cases(random):
    """One block, two, a scale of 0, scales that are subnormal or large, then random blocks."""
    one, ramp = np.ones(32, np.float32), np.arange(64, dtype=np.float32) / 8
    made = [
        ([_block(0.5, [4, 2])], one),
        ([_block(0.5, [-1, -128, 127])], np.arange(32, dtype=np.float32)),
        ([_block(1.0, [1, 2, 3]), _block(0.25, [100, -60])], ramp),
        ([_block(-2.0, [7] * 32), _block(0.5, [1] * 32)], ramp),
        ([_block(0.0, [9, 5]), _block(0.5, [3, -4])], ramp),
        ([_block(2**-24, [100] * 32), _block(-(2**-15), [5, 7])], ramp),
        ([_block(60000.0, [127, -1])], one),
    ]
    cases = [(np.array(blocks, np.uint8), x) for blocks, x in made]
    for n in (3, 8, 32):
        d, q = random.normal(0, 0.02, n).tolist(), random.integers(-127, 128, (n, 32)).tolist()
        blocks = [_block(*parts) for parts in zip(d, q)]
        cases.append((np.array(blocks, np.uint8), random.normal(size=32 * n).astype(np.float32)))
    return cases


EXERCISE = Exercise(
    goal="Multiply a row of Q8_0 blocks by a vector, block by block, without making a row of floats first.",
    reference=q8_dot, oracle=oracle, cases=cases, minutes=6, difficulty="core", tolerance=1e-5,
    hints=(
        "In one block all weights share d, so d can wait: sum q · x over the 32, multiply by d once, add to the total.",
        "`reshape` makes rows of 32 of x, and `zip` goes through them and the blocks together. `view` gives a float16 and int8: make float32 of both before you multiply.",
    ),
    why="no row of floats was made: a block is floats for as long as it takes to add it up.",
    mistakes=(
        Mistake("unsigned values", edit("view(np.int8)", "view(np.uint8)"),
            cause="The bytes were read as 0 to 255, and half of them are negative.",
            cure="View them as int8.",
            see="right where all values are positive, much too large elsewhere"),
        Mistake("one scale for the row", edit("block[:2]", "blocks[0, :2]"),
            cause="The first block's d was taken for all blocks.",
            cure="Multiply each block's sum by its own d.",
            see="153.5 where 39.125 is expected"),
        Mistake("no scale", edit("float(d) * ", ""),
            cause="The integers were multiplied by x, and d was never applied.",
            cure="Multiply each block's sum by its d.",
            see="12 times too large, or 2 times"),
        Mistake("the same part of x for every block", edit("q @ part", "q @ x[:32]"),
            cause="Every block met the first 32 numbers of x.",
            cure="Block i meets `x[32 * i : 32 * i + 32]`.",
            see="-0.875 where 39.125 is expected"),
        Mistake("the scale after the values", edit("block[:2]", "block[32:]").edit("block[2:]", "block[:32]"),
            cause="d was read from the last two bytes of each block, and it is in the first two.",
            cure="Take d from `block[:2]`.",
            see="0, or nonsense, even for one block"),
        Mistake("a big-endian scale", edit("<f2", ">f2"),
            cause="The two bytes of d were read the other way round.",
            cure="Read d as `<f2`.",
            see="a number close to 0"),
        Mistake("only the last block", edit("total +=", "total ="),
            cause="The total was overwritten by each block.",
            cure="Add to it: `total += ...`.",
            see="38.125 where 39.125 is expected: right for one block"),
        Mistake("divided by the scale",
            edit("float(d) * float(q @ part)", "float(q @ part) / float(d) if d else 0.0"),
            cause="Quantizing divides by d; coming back multiplies.",
            cure="Multiply by d.",
            see="four times too large where d is 0.5"),
        Mistake("one number in an array",
            edit("[0].astype", ".astype").edit("float(d) * float(q @ part)", "d * (q @ part)"),
            cause='`block[:2].view("<f2")` is an array of one number, and so is all that was multiplied by it.',
            cure="Take the number out of it with `[0]`.",
            see="`[0.5]` of shape (1,) where a number is expected"),
        Mistake("multiplied in int8",
            edit("view(np.int8).astype(np.float32)", "view(np.int8)").edit("q @ part", "q @ part.astype(np.int8)"),
            cause="The products stayed int8, where 127 is the largest number.",
            cure="Convert q to float32 before you multiply.",
            see="right for small numbers"),
    ),
)
