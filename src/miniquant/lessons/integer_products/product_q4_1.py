"""Rows of Q4_1 times a row of Q8_1."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit
from .parts import half_at, nibbles, q4_1_block, q8_1_block


def product_q4_1(w, x):
    """A matrix of Q4_1 times a vector of Q8_1.

    w: (rows, blocks, 20) uint8, each block a float16 d, a float16 m and 16
        bytes of nibbles in the order of Q4_0; a weight is d × q + m;
        x: (blocks, 36) uint8, each block a float16 d, a float16 s and 32
        signed bytes
    ->   (rows,) float64: for each pair of blocks the sum of the products of
         integers times both d, plus m × s; the pairs of a row added; right
         to 1e-6
    """
    q = np.concatenate([w[..., 4:] & 15, w[..., 4:] >> 4], axis=-1)  # (rows, blocks, 32)
    dots = (q.astype(np.int32) * x[:, 4:].view(np.int8)).sum(axis=-1)  # (rows, blocks)
    return (half_at(w, 0) * half_at(x, 0) * dots + half_at(w, 2) * half_at(x, 2)).sum(axis=-1)


def oracle(w, x):
    """One pair of numbers after another, with struct."""
    found = []
    for row in w.tolist():
        total = 0.0
        for block, given in zip(row, x.tolist()):
            d, m, packed = struct.unpack("<2e16s", bytes(block))
            e, s, *numbers = struct.unpack("<2e32b", bytes(given))
            whole = 0
            for n, number in zip(nibbles(packed), numbers):
                whole += n * number
            total += whole * d * e + m * s
        found.append(total)
    return np.array(found)


def cases(random):
    """No min, a min alone, both, two blocks, several rows, sums that float16 rounds, random blocks."""
    made = [
        ([[q4_1_block(1.0, 0.0, [3, 2])]], [q8_1_block(1.0, 4.0, [5, -1])]),
        ([[q4_1_block(1.0, -2.0, [0])]], [q8_1_block(0.5, 7.0, [10, 4])]),
        ([[q4_1_block(0.5, 1.5, [15] + [0] * 15 + [4])]], [q8_1_block(2.0, 26.0, [3] + [0] * 15 + [10])]),
        (
            [[q4_1_block(2.0, 0.25, [1, 2, 3]), q4_1_block(0.25, -4.0, [4, 5])]],
            [q8_1_block(0.5, 5.0, [9, 8, -7]), q8_1_block(4.0, 44.0, [6, 5])],
        ),
        (
            [[q4_1_block(1.0, -1.0, [1, 2])], [q4_1_block(0.5, 3.0, [0, 15, 7])], [q4_1_block(0.0, 1.0, [7] * 32)]],
            [q8_1_block(0.25, -44.5, [-100, 50, -128])],
        ),
        ([[q4_1_block(1.0, 0.0, [15] * 32)]], [q8_1_block(1.0, 4064.0, [127] * 32)]),  # more than 16 bits hold
    ]
    cases = [tuple(np.array(blocks, np.uint8) for blocks in pair) for pair in made]
    scales, least = random.uniform(0, 30, (4, 4)), random.normal(0, 90, (4, 4))  # large: float32 is not enough
    scales[:2, 0], least[2, 0] = 0, 0
    w = [
        [q4_1_block(d, m, random.integers(0, 16, 32).tolist()) for d, m in zip(*row)]
        for row in zip(scales.tolist(), least.tolist())
    ]
    x = []
    for d in (2.3, 2e-8, *random.uniform(0, 5, 2).tolist()):  # float16 has 0 for the second, and not for its sum
        q = random.integers(-127, 128, 32).tolist()
        x.append(q8_1_block(d, d * sum(q), q))
    return [*cases, (np.array(w, np.uint8), np.array(x, np.uint8))]


_MIN = " + half_at(w, 2) * half_at(x, 2)"
_D = "half_at(w, 0) * half_at(x, 0) * dots"

EXERCISE = Exercise(
    goal="Multiply a matrix of Q4_1 blocks with a vector of Q8_1 blocks; the min of a block meets the sum of the other.",
    reference=product_q4_1, oracle=oracle, cases=cases, minutes=6, difficulty="core", tolerance=1e-6,
    hints=(
        "As for Q4_0, but the integers are not shifted, the parts begin at other bytes, and each pair of blocks adds one product more: m × s.",
        "`half_at(w, 2)` is m and `half_at(x, 2)` is s. Both have a number for each block, so they can be multiplied and added before the last `.sum(axis=-1)`.",
    ),
    why="one multiplication for each block instead of 32: the sum was made when the activations were rounded.",
    mistakes=(
        Mistake("the min forgotten", edit(_MIN, ""),
            cause="m × s was left out.",
            cure="Add m × s for each pair of blocks.", see="right where m is 0"),
        Mistake("the min subtracted", edit(_MIN, _MIN.replace("+", "-")),
            cause="m × s was subtracted, as K-quants do it with theirs. In Q4_1 m is added.",
            cure="Add m × s.", see="right where m is 0"),
        Mistake("the min times its scale", edit(_MIN, " + half_at(w, 0) * half_at(w, 2) * half_at(x, 2)"),
            cause="m was multiplied by the d of the weights, too. It is a weight already.",
            cure="Use m as it is.", see="right where the d of the weights is 1"),
        Mistake("the scale of the activations twice", edit(_MIN, " + half_at(w, 2) * half_at(x, 2) * half_at(x, 0)"),
            cause="s was multiplied by the d of the activations, and that is already in it.",
            cure="Use s as it is.", see="right where the d of the activations is 1"),
        Mistake("the sum made again", edit("half_at(w, 2) * half_at(x, 2)", "half_at(w, 2) * half_at(x, 0) * x[:, 4:].view(np.int8).astype(np.int32).sum(axis=-1)"),
            cause="The sum was made again, from the stored d. s was made from the scale before it was rounded, and it is what ggml uses.",
            cure="Use the s of the block.", see="right where s is exactly d × the sum, elsewhere off in the fourth digit"),
        Mistake("the min 32 times", edit("half_at(w, 2) * half_at(x, 2)", "32 * half_at(w, 2) * half_at(x, 2)"),
            cause="m × s was multiplied by the number of weights; the sum s counts all of them already.",
            cure="Add m × s once.", see="right where m is 0"),
        Mistake("the min alone", edit("half_at(w, 2) * half_at(x, 2)", "half_at(w, 2)"),
            cause="m was added without the activations.",
            cure="Multiply it by s.", see="right where m is 0 or s is 1"),
        Mistake("8 subtracted", edit("q.astype(np.int32)", "(q.astype(np.int32) - 8)"),
            cause="8 was subtracted from the integers. In Q4_1 they go from 0 to 15.",
            cure="Use them as they are.", see="each product off by 8 times the sum of the activations"),
        Mistake("neighbours in a byte", edit("np.concatenate([w[..., 4:] & 15, w[..., 4:] >> 4], axis=-1)", "np.stack([w[..., 4:] & 15, w[..., 4:] >> 4], axis=-1).reshape(*w.shape[:2], 32)"),
            cause="The nibbles of a byte were taken as neighbours; they are weight j and weight j + 16.",
            cure="Put all low nibbles first, then all high ones.", see="right where all activations of a block are equal"),
        Mistake("activations unsigned", edit(".view(np.int8)", ""),
            cause="The bytes of the activations were read without a sign.",
            cure="View them as int8.", see="right where no activation is below 0"),
        Mistake("d and m exchanged", edit("half_at(w, 0)", "half_at(w, 2)").edit("+ half_at(w, 2)", "+ half_at(w, 0)"),
            cause="m was used as d and d as m.",
            cure="d comes first in the block.", see="right where d and m are equal"),
        Mistake("d and s exchanged", edit("half_at(x, 0)", "half_at(x, 2)").edit("half_at(w, 2) * half_at(x, 2)).sum", "half_at(w, 2) * half_at(x, 0)).sum"),
            cause="s was used as d of the activations and d as s.",
            cure="d comes first in the block.", see="right where d and s are equal"),
        Mistake("a number for each block", edit(f"({_D}{_MIN}).sum(axis=-1)", f"{_D}{_MIN}"),
            cause="The blocks were not added up.",
            cure="Add them along the last axis.", see="the shape (rows, blocks)"),
    ),
)
