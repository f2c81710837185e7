"""Rows of Q4_0 times a row of Q8_0."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit
from .parts import half_at, nibbles, q4_0_block, q8_0_block


def product_q4_0(w, x):
    """A matrix of Q4_0 times a vector of Q8_0, with integers inside the
    blocks.

    w: (rows, blocks, 18) uint8, each block a float16 d and 16 bytes of
        nibbles: byte j holds weight j in its low and weight j + 16 in its
        high nibble, each plus 8; x: (blocks, 34) uint8, each block a
        float16 d and 32 signed bytes
    ->   (rows,) float64: for each pair of blocks the sum of the products of
         integers, without loss, times both d; the pairs of a row added;
         right to 1e-6
    """
    low, high = w[..., 2:] & 15, w[..., 2:] >> 4
    q = np.concatenate([low, high], axis=-1).astype(np.int32) - 8  # (rows, blocks, 32)
    dots = (q * x[:, 2:].view(np.int8)).sum(axis=-1)  # (rows, blocks)
    return (half_at(w, 0) * half_at(x, 0) * dots).sum(axis=-1)


def oracle(w, x):
    """One pair of numbers after another, with struct."""
    found = []
    for row in w.tolist():
        total = 0.0
        for block, given in zip(row, x.tolist()):
            d, packed = struct.unpack("<e16s", bytes(block))
            e, *numbers = struct.unpack("<e32b", bytes(given))
            whole = 0
            for n, number in zip(nibbles(packed), numbers):
                whole += (n - 8) * number
            total += whole * d * e
        found.append(total)
    return np.array(found)


def cases(random):
    """One pair of numbers, the second half, large sums, two blocks, several rows, a scale below 0, random blocks."""
    made = [
        ([[q4_0_block(1.0, [3])]], [q8_0_block(1.0, [5])]),
        ([[q4_0_block(0.5, [-8] + [0] * 15 + [2])]], [q8_0_block(2.0, [1] * 15 + [0, 10])]),
        ([[q4_0_block(1.0, [7] * 32)]], [q8_0_block(1.0, [127] * 32)]),
        ([[q4_0_block(2.0, [1, 2, 3]), q4_0_block(0.25, [4, -5])]], [q8_0_block(0.5, [9, 8, -7]), q8_0_block(4.0, [6, 5])]),
        (
            [[q4_0_block(1.0, [1, 2])], [q4_0_block(-2.0, [0, 7, -7])], [q4_0_block(0.0, [7] * 32)]],
            [q8_0_block(0.25, [-100, 50, -128])],
        ),
        ([[q4_0_block(1.0, [-8] * 32)]], [q8_0_block(1.0, [-128] * 32)]),  # 32768: one more than 16 bits hold
    ]
    cases = [tuple(np.array(blocks, np.uint8) for blocks in pair) for pair in made]
    scales = random.normal(0, 30, (4, 4))  # large: float32 is not enough
    scales[:2, 0], scales[3, 2] = 0, 3e-6  # the smallest float16 have fewer digits
    w = [[q4_0_block(d, random.integers(-8, 8, 32).tolist()) for d in row] for row in scales]
    x = [q8_0_block(d, random.integers(-127, 128, 32).tolist()) for d in (2.3, 0.0, *random.uniform(0, 5, 2))]
    return [*cases, (np.array(w, np.uint8), np.array(x, np.uint8))]


_Q = "np.concatenate([low, high], axis=-1).astype(np.int32) - 8"
_X = "x[:, 2:].view(np.int8)"
_D = "half_at(w, 0) * half_at(x, 0) * dots"

EXERCISE = Exercise(
    goal="Multiply a matrix of Q4_0 blocks with a vector of Q8_0 blocks, with integers inside of each pair of blocks.",
    reference=product_q4_0, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-6,
    hints=(
        "Three steps: the nibbles become integers from -8 to 7; the 32 products of a pair of blocks are added up; both scales come in after that, and the pairs of a row are added.",
        "`np.concatenate` along the last axis joins low and high nibbles; `.astype(np.int32)` before you subtract and multiply. `.view(np.int8)` shows bytes as signed. `half_at` gives the scales, and `.sum(axis=-1)` adds along the last axis.",
    ),
    why="no weight was turned into a float: 32 small integers, one multiplication by the scales.",
    mistakes=(
        Mistake("8 not subtracted", edit(_Q, _Q.removesuffix(" - 8")),
            cause="The nibbles are stored plus 8, and the 8 was left in.",
            cure="Subtract 8 from each nibble.", see="products that are too large where the activations are positive"),
        Mistake("7 subtracted", edit(_Q, _Q.replace("- 8", "- 7")),
            cause="7 was subtracted from the nibbles, and they are stored plus 8.",
            cure="Subtract 8.", see="each product off by the sum of the activations"),
        Mistake("8 subtracted from bytes", edit(_Q, "(np.concatenate([low, high], axis=-1) - 8).astype(np.int32)"),
            cause="8 was subtracted while the nibbles were uint8, where 0 - 8 is 248.",
            cure="Cast to int32, then subtract.", see="far too large where a weight is below 0"),
        Mistake("two's complement", edit(_Q, "((np.concatenate([low, high], axis=-1).astype(np.int32) + 8) % 16 - 8)"),
            cause="The nibbles were read as two's complement. Q4_0 stores each integer plus 8.",
            cure="Subtract 8.", see="every weight off by 8"),
        Mistake("neighbours in a byte", edit("np.concatenate([low, high], axis=-1)", "np.stack([low, high], axis=-1).reshape(*w.shape[:2], 32)"),
            cause="The nibbles of a byte were taken as neighbours; they are weight j and weight j + 16.",
            cure="Put all low nibbles first, then all high ones.", see="right where all activations of a block are equal"),
        Mistake("high nibbles first", edit("[low, high]", "[high, low]"),
            cause="The high nibbles came first.",
            cure="The low nibbles are weights 0 to 15.", see="the two halves of a block exchanged"),
        Mistake("activations unsigned", edit(_X, "x[:, 2:]"),
            cause="The bytes of the activations were read without a sign: -1 became 255.",
            cure="View them as int8.", see="right where no activation is below 0"),
        Mistake("products in int8", edit(".astype(np.int32) - 8", ".astype(np.int8) - 8"),
            cause="Products were made in int8 and wrapped around beyond 127.",
            cure="Cast to int32 before you multiply.", see="right for small products"),
        Mistake("the scale of the activations forgotten", edit(_D, "half_at(w, 0) * dots"),
            cause="The d of the activations was left out.",
            cure="Multiply by both d.", see="right where the d of the activations is 1"),
        Mistake("the scale of the weights forgotten", edit(_D, "half_at(x, 0) * dots"),
            cause="The d of the weights was left out.",
            cure="Multiply by both d.", see="right where the d of the weights is 1"),
        Mistake("scales added", edit(_D, "(half_at(w, 0) + half_at(x, 0)) * dots"),
            cause="The two scales were added.",
            cure="Multiply them.", see="wrong nearly everywhere"),
        Mistake("the scales at the end", edit(f"({_D}).sum(axis=-1)", "(half_at(w, 0) * half_at(x, 0)).mean(axis=-1) * dots.sum(axis=-1)"),
            cause="The integers of all blocks were added first. Each pair of blocks has scales of its own.",
            cure="Multiply each pair's sum by its own two scales, then add.", see="right for rows of one block"),
        Mistake("a number for each block", edit(f"({_D}).sum(axis=-1)", _D),
            cause="The blocks were not added up.",
            cure="Add them along the last axis.", see="the shape (rows, blocks)"),
        Mistake("one number for all rows", edit(f"({_D}).sum(axis=-1)", f"np.full(len(w), ({_D}).sum())"),
            cause="The products of all rows were added together.",
            cure="Add along the last axis only: a number for each row.", see="right for one row"),
        Mistake("float32", edit(f"({_D}).sum(axis=-1)", f"({_D}).sum(axis=-1).astype(np.float32)"),
            cause="The result is float32.",
            cure="Keep float64.", see="the dtype float32"),
    ),
)
