"""A sum that must not wrap around."""

import numpy as np

from ...lab import Exercise, Mistake, edit


def fits_inside(offset, size, left):
    """Whether `size` bytes from `offset` on lie inside `left` bytes.

    offset, size, left: np.uint64, whose sums and differences wrap around
    ->   True or False
    A size of 0 fits at every offset from 0 to left, and nowhere after it.
    """
    return bool(size <= left and offset <= left - size)


def oracle(offset, size, left):
    """With Python's integers, which do not wrap around."""
    return sum((int(offset), int(size))) <= int(left)


def cases(random):
    """Small numbers, numbers whose sum wraps around, then random ones."""
    made = [(0, 8, 8), (4, 8, 12), (8, 0, 8), (0, 0, 0), (5, 8, 12), (9, 0, 8), (13, 0, 12), (0, 13, 12), (7, 7, 12)]
    made += [(2**64 - 8, 16, 100), (2**64 - 8, 8, 100), (16, 2**64 - 16, 100), (2**63, 2**63, 100), (2**63, 1, 100)]
    made += [(2**64 - 100, 2, 100), (90, 2**64 - 100, 100), (2**64 - 1, 2**64 - 1, 100)]
    made += [(2**53, 1, 2**53), (2**53 + 1, 0, 2**53), (2**63, 2**63 - 1, 2**64 - 1), (2**63, 2**63, 2**64 - 1)]
    made += [(0, 2**64 - 1, 2**64 - 1), (1, 2**64 - 1, 2**64 - 1), (2**64 - 1, 0, 2**64 - 1), (2**64 - 1, 1, 2**64 - 1)]
    made += [(2**64 - 1, 0, 2**64 - 2), (2**64 - 2, 1, 2**64 - 1), (1, 1, 2**64 - 1), (0, 8, 0), (5, 0, 0)]
    made += [(2**32, 8, 100), (8, 2**32, 100), (2**32, 8, 2**33), (100, 2**33, 2**34)]
    made += [tuple(map(int, row)) for row in random.integers(0, 50, (6, 3))]
    return [tuple(np.uint64(number) for number in row) for row in made]


EXERCISE = Exercise(
    goal="Say whether a tensor of `size` bytes at `offset` lies inside `left` bytes, with numbers that wrap around.",
    reference=fits_inside, oracle=oracle, cases=cases, minutes=6, difficulty="core",
    hints=(
        "The numbers are `np.uint64`, as in C: `offset + size` may wrap around to something small. Subtract instead, and only what cannot go below zero.",
        "Two comparisons joined by `and`: the first makes sure that the subtraction in the second one does not wrap.",
    ),
    why="this line is the whole difference between a refused file and memory of yours in somebody's hands.",
    mistakes=(
        Mistake("the sum wraps around", edit("size <= left and offset <= left - size", "offset + size <= left"),
            cause="`offset + size` is a number of 64 bits, and the sum of two large ones comes out small.",
            cure="Do not add: `size <= left and offset <= left - size`.", see="an offset of 2**64 - 8 accepted"),
        Mistake("only the offset", edit("size <= left and offset <= left - size", "offset <= left"),
            cause="You looked where the tensor begins, and it is its end that may lie outside.",
            cure="Compare `offset` with `left - size`.", see="a tensor that begins inside and ends outside accepted"),
        Mistake("only the size", edit("size <= left and offset <= left - size", "size <= left"),
            cause="You asked whether the tensor is small enough, and not where it lies.",
            cure="Compare `offset` with `left - size` as well.", see="a small tensor far outside accepted"),
        Mistake("each alone", edit("size <= left and offset <= left - size", "size <= left and offset <= left"),
            cause="Offset and size are each small enough, and together they are not.",
            cure="Compare `offset` with `left - size`, what remains once the tensor has its room.",
            see="offset 7 and size 7 accepted in 12 bytes"),
        Mistake("the difference wraps around",
            edit("size <= left and offset <= left - size", "offset <= left - size"),
            cause="`left - size` goes below zero if the size is larger, and wraps around to something huge.",
            cure="Ask first whether `size <= left`.", see="a size of 13 in 12 bytes accepted"),
        Mistake("the other difference wraps around",
            edit("size <= left and offset <= left - size", "size <= left - offset"),
            cause="`left - offset` goes below zero if the offset is larger, and wraps around to something huge.",
            cure="Ask first whether `offset <= left`.", see="an offset of 13 in 12 bytes accepted"),
        Mistake("off by one at the end",
            edit("size <= left and offset <= left - size", "int(offset) + int(size) < int(left)"),
            cause="You compared with `<`, and a tensor whose last byte is the file's last byte is inside.",
            cure="Compare with `<=`.", see="False for 8 bytes in 8"),
        Mistake("in floating point", edit("size <= left and offset <= left - size", "float(offset) + float(size) <= float(left)"),
            cause="A float has 53 bits, so beyond 2**53 the sum loses its last digits.",
            cure="Compare integers.", see="offset 2**53 and size 1 accepted in 2**53 bytes"),
        Mistake("cut to 32 bits", edit("size <= left and offset <= left - size", "(int(offset) & 0xFFFFFFFF) + (int(size) & 0xFFFFFFFF) <= int(left)"),
            cause="Only the low 32 bits of offset and size were compared, and both have 64.",
            cure="Use them as they are.", see="an offset of 2**32 accepted in 100 bytes"),
        Mistake("nothing fits at the end", edit("size <= left and offset <= left - size", "size <= left and offset <= left - size and offset < left"),
            cause="A size of 0 was refused at the very end, where it fits.",
            cure="Compare `offset` with `left - size` alone.", see="False for a size of 0 at offset 8 in 8 bytes"),
        Mistake("as signed numbers", edit(
                "size <= left and offset <= left - size",
                "int(offset.astype(np.int64)) + int(size.astype(np.int64)) <= int(left)",
            ),
            cause="The numbers were taken as signed: an offset of 2**63 is then negative, and every sum with it small.",
            cure="Offsets and sizes are unsigned; compare them as they are.", see="an offset of 2**63 accepted"),
    ),
)
