"""Blocks of TQ2_0: four levels in a byte, and a float16."""

import numpy as np

from ...lab import Exercise, Mistake, edit


def encode_tq2_0(levels, scale):
    """Blocks of TQ2_0.

    levels: (n, 256) int8, -1, 0 or 1; scale: (n, 1) float16
    ->   bytes, 66 for each block: 64 bytes of codes, then the scale as a
         float16, little-endian

    The code of a level is the level plus 1. Bytes 0 to 31 have the codes of
    weights 0 to 127, bytes 32 to 63 those of weights 128 to 255. Byte j of
    32 has the code of weight j in its lowest two bits, above it those of
    weights j + 32, j + 64 and j + 96.
    """
    codes = (levels + 1).astype(np.uint8).reshape(-1, 2, 4, 32)
    packed = codes[:, :, 0].copy()  # (n, 2, 32)
    for i in (1, 2, 3):
        packed |= codes[:, :, i] << 2 * i
    d = scale.astype("<f2").view(np.uint8)  # (n, 2)
    return np.concatenate([packed.reshape(-1, 64), d], axis=1).tobytes()


def oracle(levels, scale):
    """Byte by byte: a number with four digits in base 4."""
    found = b""
    for row, (d,) in zip(levels.tolist(), scale):
        for half in (row[:128], row[128:]):
            found += bytes(sum((half[j + 32 * i] + 1) * 4**i for i in range(4)) for j in range(32))
        found += np.array([d], "<f2").tobytes()
    return found


def cases(random):
    """Zeros, one level at a time, runs, several blocks, drawn ones with small and large scales."""
    zero = np.zeros((1, 256), np.int8)
    first, last, middle = zero.copy(), zero.copy(), zero.copy()
    first[0, 0], last[0, 255], middle[0, [33, 64, 130]] = 1, -1, (1, -1, 1)
    runs = (np.arange(256)[None] // 32 % 3 - 1).astype(np.int8)
    one = np.array([[1.0]], np.float16)
    several = np.concatenate([first, runs, last])
    drawn = random.integers(-1, 2, (5, 256)).astype(np.int8)
    return [
        (zero, one),
        (first, one),
        (middle, one),
        (last, one * 0.5),
        (runs, one * -0.25),
        (several, np.array([[1.5], [0.0], [0.1]], np.float16)),
        (drawn, (random.uniform(0.1, 1, (5, 1)) * [[1], [1e-2], [1e-4], [1e-5], [100]]).astype(np.float16)),
    ]


def fields(levels, scale):
    """The parts of each block: (name, start, end)."""
    found = []
    for i in range(len(levels)):
        found += [(f"the codes of block {i}", 66 * i, 66 * i + 64), (f"the scale of block {i}", 66 * i + 64, 66 * i + 66)]
    return found


EXERCISE = Exercise(
    goal="Write blocks of 256 ternary weights as TQ2_0: 64 bytes of codes, then a scale.",
    reference=encode_tq2_0, oracle=oracle, cases=cases, minutes=8, difficulty="core", fields=fields,
    hints=(
        "A byte has four codes, and they are 32 weights apart. So cut a block into two halves and each half into four runs of 32; the runs go on top of each other.",
        "`reshape(-1, 2, 4, 32)` cuts the blocks. `<<` moves the codes of a run up, and `|` puts them into the same bytes. `.view(np.uint8)` shows the two bytes of a float16, and `np.concatenate` with `axis=1` joins columns.",
    ),
    why="the trained weights are in the file without any change: nothing is rounded a second time.",
    mistakes=(
        Mistake("levels without 1", edit("(levels + 1)", "levels"),
            cause="-1 became 255, which has all bits set.",
            cure="Add 1 first: the codes are 0, 1 and 2.", see="`00` for zeros, where `55` is expected"),
        Mistake("neighbours in one byte", edit(".reshape(-1, 2, 4, 32)", ".reshape(-1, 2, 32, 4).swapaxes(2, 3)"),
            cause="Four neighbours share a byte. In TQ2_0 they are 32 weights apart.",
            cure="Put weights j, j + 32, j + 64 and j + 96 into byte j.", see="right for zeros and the first weight"),
        Mistake("runs of 64", edit(".reshape(-1, 2, 4, 32)", ".reshape(-1, 4, 64)[:, None]").edit("packed = codes[:, :, 0].copy()  # (n, 2, 32)", "packed = codes[:, :, 0].copy()"),
            cause="The four codes of a byte are 64 weights apart.",
            cure="Cut the block into two halves first, and each into runs of 32.", see="right for zeros and the first weight"),
        Mistake("the first run on top", edit("2 * i", "6 - 2 * i").edit("codes[:, :, 0].copy()", "codes[:, :, 0] << 6"),
            cause="Weight j is in the highest two bits.",
            cure="Put it into the lowest two bits.", see="right for zeros; the first weight in the highest bits"),
        Mistake("one bit at a time", edit("<< 2 * i", "<< i"),
            cause="The codes overlap: each has two bits.",
            cure="Move run i up by 2 × i bits.", see="`0f` or less for zeros"),
        Mistake("the scale first", edit("[packed.reshape(-1, 64), d]", "[d, packed.reshape(-1, 64)]"),
            cause="The scale is before the codes, as in Q4_0.",
            cure="Put it after the codes.", see="every code two bytes too late"),
        Mistake("big-endian", edit('"<f2"', '">f2"'),
            cause="The scale is big-endian.",
            cure='Use "<f2".', see="the last two bytes exchanged"),
        Mistake("a float32 scale", edit('"<f2"', '"<f4"'),
            cause="The scale takes four bytes.",
            cure="Store a float16, two bytes.", see="68 bytes for a block"),
        Mistake("all scales at the end", edit("np.concatenate([packed.reshape(-1, 64), d], axis=1).tobytes()", "packed.tobytes() + d.tobytes()"),
            cause="All codes come first, and the scales follow.",
            cure="Join them block by block, with `axis=1`.", see="right for one block"),
        Mistake("halves exchanged", edit("packed.reshape(-1, 64)", "packed[:, ::-1].reshape(-1, 64)"),
            cause="The second half of the block came first.",
            cure="Keep the halves in their order.", see="right where both halves are alike"),
        Mistake("an array", edit(".tobytes()", ""),
            cause="The result is an array.",
            cure="Convert it with `.tobytes()`.", see="an array"),
    ),
)
