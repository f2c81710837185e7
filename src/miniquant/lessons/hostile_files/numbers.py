"""The exercises of lab 17 on arithmetic: a count, a product and a sum, each made by a file that may lie."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...core.errors import FormatError
from ...lab.spec import Case, Exercise, Mistake
from .machine import U32, U64

MOST_WEIGHTS = 2**60  # dims that multiply to more are a lie


def signed(number: int) -> int:
    """What a 64-bit number is to a program that reads it as a signed one.

    >>> signed(2**64 - 1), signed(5)
    (-1, 5)
    """
    return number - 2**64 if number >= 2**63 else number


# ---- bounded_count ---------------------------------------------------------------------------------------------------


def bounded_count(count: int, smallest: int, left: int) -> int:
    """The reference: how many entries the header says, the bytes of the smallest, the bytes left -> the count."""
    if count * smallest > left:
        raise FormatError(f"found {count} entries of at least {smallest} bytes, and {left} bytes are left")
    return count


def bounded_count_oracle(count: int, smallest: int, left: int) -> int:
    """How many fit is counted by taking away."""
    room = 0
    while left >= smallest:
        left -= smallest
        room += 1
    if room < count:
        raise FormatError(f"{room} entries fit")
    return count


def _count_cases(random: np.random.Generator) -> list[Case]:
    good = [(2, 25, 50), (0, 25, 0), (3, 14, 50), (0, 14, 5), (1, 14, 14)]
    bad = [(1, 25, 24), (3, 25, 74), (60, 14, 100), (178_956_971, 24, 100), (2**63, 14, 100), (2**64 - 1, 14, 100)]
    drawn = [(int(n), int(size), int(n * size + more)) for n, size, more in random.integers(1, 60, (4, 3))]
    return [*good, *bad, *drawn]


def _count(count: int, smallest: int, left: int, refused: Any) -> int:
    if refused(count, smallest, left):
        raise FormatError("refused")
    return count


BOUNDED_COUNT = Exercise(
    name="bounded_count",
    lab="17",
    goal="Believe a count only if so many entries, each as small as can be, fit into the bytes that are left.",
    minutes=4,
    difficulty="warm-up",
    reference=bounded_count,
    oracle=bounded_count_oracle,
    cases=_count_cases,
    hints=(
        "Before you allocate or loop, ask how many bytes `count` entries take at the very least.",
        "`if count * smallest > left: raise FormatError(...)`, then `return count`. Python's integers do not wrap "
        "around; in C you would compare `count` with `left / smallest` instead.",
    ),
    why="a file now pays with its own bytes for every entry that it makes you prepare for.",
    mistakes=(
        Mistake(
            "nothing checked",
            partial(_count, refused=lambda count, smallest, left: False),
            "The count is returned as the file says it.",
            "Raise `FormatError` if `count * smallest` is more than `left`.",
            "2**63 entries in 100 bytes accepted",
        ),
        Mistake(
            "entries compared with bytes",
            partial(_count, refused=lambda count, smallest, left: count > left),
            "You compared the number of entries with a number of bytes, as if an entry took one byte.",
            "Multiply the count by `smallest` first.",
            "60 entries of 14 bytes accepted in 100 bytes",
        ),
        Mistake(
            "product in 32 bits",
            partial(_count, refused=lambda count, smallest, left: count * smallest & U32 > left),
            "The product was cut to 32 bits, and one that wraps around looks small.",
            "Let the product be as large as it is, or divide instead of multiplying.",
            "178,956,971 entries of 24 bytes accepted in 100 bytes",
        ),
        Mistake(
            "product in 64 bits",
            partial(_count, refused=lambda count, smallest, left: count * smallest & U64 > left),
            "The product was cut to 64 bits; 2**63 times 14 is then 0.",
            "Let the product be as large as it is, or divide instead of multiplying.",
            "2**63 entries accepted, 2**64 - 1 refused",
        ),
        Mistake(
            "a negative count accepted",
            partial(_count, refused=lambda count, smallest, left: signed(count) * smallest > left),
            "The count was read as a signed number: the largest ones are then negative, and less than anything.",
            "A count is unsigned; compare it as it is.",
            "2**64 - 1 entries accepted",
        ),
        Mistake(
            "off by one at the end",
            partial(_count, refused=lambda count, smallest, left: count * smallest >= left > 0),
            "You compared with `>=`, and entries that fill the file to its last byte fit.",
            "Compare with `>`.",
            "FormatError for two entries of 25 bytes in 50",
        ),
        Mistake(
            "cut instead of refused",
            lambda count, smallest, left: min(count, left // smallest),
            "The count was lowered to what fits, so a broken file is read as if it were a good one with less in it.",
            "Raise `FormatError`; do not repair what you cannot know.",
            "a smaller count where an error is expected",
        ),
        Mistake(
            "rounded up",
            partial(_count, refused=lambda count, smallest, left: count > -(-left // smallest)),
            "The number of entries that fit was rounded up, and the last of them has no room.",
            "Round down: `left // smallest`.",
            "one entry of 25 bytes accepted in 24",
        ),
    ),
)

# ---- tensor_size -----------------------------------------------------------------------------------------------------


def tensor_size(dims: tuple[int, ...], weights: int, size: int) -> int:
    """The reference: dims, and the weights and bytes of a block -> bytes of the tensor."""
    product = 1
    for dim in dims:
        product *= dim or 1
        if product >= MOST_WEIGHTS:
            raise FormatError(f"the dims {dims} multiply to more than any file holds")
    return 0 if 0 in dims else product // weights * size


def tensor_size_oracle(dims: tuple[int, ...], weights: int, size: int) -> int:
    """With logarithms of two, as lengths in bits: exact where the product is small enough to be made at all."""
    rest = [dim for dim in dims if dim]
    if sum(dim.bit_length() - 1 for dim in rest) >= 60:
        raise FormatError("too large")
    whole = 1
    for dim in sorted(rest):
        whole = sum(whole << bit for bit in range(dim.bit_length()) if dim >> bit & 1)
    if whole >> 60:
        raise FormatError("too large")
    blocks = 0 if len(rest) < len(dims) else whole // weights
    return sum(blocks for _ in range(size))


def _size_cases(random: np.random.Generator) -> list[Case]:
    good = [((3, 5), 1, 4), ((32, 2), 32, 18), ((), 1, 4), ((0, 7), 1, 4), ((7, 3, 2), 1, 2), ((64, 3), 32, 34)]
    good += [((2**16, 2**16), 1, 4), ((2**53 + 1,), 1, 1), ((2**59,), 1, 4)]
    bad = [((2**16,) * 4, 1, 4), ((2**32, 2**32), 32, 18), ((2**63,), 1, 4), ((2**64 - 1, 3), 1, 4), ((2**63, 0), 1, 4)]
    bad += [((0, 2**32, 2**31), 1, 4), ((2**59, 2), 1, 2)]
    drawn = [(tuple(int(d) for d in row), 1, 4) for row in random.integers(1, 300, (3, 3))]
    return [*good, *bad, *drawn]


def _product(dims: tuple[int, ...], keep: Any = int, zero: bool = True) -> int:
    whole = 1
    for dim in dims:
        whole = keep(whole * (dim if dim or not zero else 1))
    return whole


def _size(dims: tuple[int, ...], weights: int, size: int, keep: Any = int, zero: bool = True, check: Any = None) -> int:
    whole = _product(dims, keep, zero)
    if (check or (lambda dims: whole >= MOST_WEIGHTS))(dims):
        raise FormatError("refused")
    return 0 if 0 in dims else int(whole // weights * size)


def _signed_size(dims: tuple[int, ...], weights: int, size: int) -> int:
    return _size(tuple(map(signed, dims)), weights, size)


def _limited_bytes(dims: tuple[int, ...], weights: int, size: int) -> int:
    return _size(dims, weights, size, check=lambda dims: _product(dims) // weights * size >= MOST_WEIGHTS)


def _size_in_turn(dims: tuple[int, ...], weights: int, size: int) -> int:
    until = dims.index(0) + 1 if 0 in dims else len(dims)
    return _size(dims[:until], weights, size)


TENSOR_SIZE = Exercise(
    name="tensor_size",
    lab="17",
    goal="Compute the bytes of a tensor from its dims, and refuse dims whose product no file can hold.",
    minutes=6,
    difficulty="core",
    reference=tensor_size,
    oracle=tensor_size_oracle,
    cases=_size_cases,
    hints=(
        "Multiply the dims that are not 0. If the product reaches 2**60, refuse: a zero beside them excuses nothing.",
        "Then 0 bytes if a dim is 0, else `product // weights * size`. A tensor without dims has one weight: begin "
        "with 1.",
    ),
    why="one product decides how much is allocated and how much is copied: it must not be two different numbers.",
    mistakes=(
        Mistake(
            "nothing checked",
            partial(_size, check=lambda dims: False),
            "The product is as large as the dims say, and somebody will try to allocate it.",
            "Raise `FormatError` if the product of the dims that are not 0 is 2**60 or more.",
            "dims of 2**63 accepted",
        ),
        Mistake(
            "product in 32 bits",
            partial(_size, keep=lambda x: x & U32),
            "The product was cut to 32 bits: 65,536 times 65,536 is then 0.",
            "Let the product grow, and compare it with 2**60.",
            "0 bytes for dims (65536, 65536)",
        ),
        Mistake(
            "product in 64 bits",
            partial(_size, keep=lambda x: x & U64),
            "The product was cut to 64 bits, and dims of 2**32 each give 0 bytes.",
            "Let the product grow, and compare it with 2**60.",
            "0 bytes for dims (2**32, 2**32)",
        ),
        Mistake(
            "in floating point",
            partial(_size, keep=float),
            "The product was computed as a float, which has 53 bits: large ones lose their last digits.",
            "Multiply Python's integers.",
            "one byte too few for 2**53 + 1 weights",
        ),
        Mistake(
            "a zero excuses the others",
            partial(_size, zero=False),
            "The product with a zero in it is 0, so the check never sees the dims beside it.",
            "Leave the zeros out of the product that you check.",
            "dims (2**63, 0) accepted",
        ),
        Mistake(
            "negative dims accepted",
            _signed_size,
            "The dims were read as signed numbers, and a negative product is less than any limit.",
            "Dims are unsigned; take them as they are.",
            "a negative number of bytes",
        ),
        Mistake(
            "each dim alone",
            partial(_size, check=lambda dims: max(dims, default=0) >= MOST_WEIGHTS),
            "You checked the dims one by one, and it is their product that is too large.",
            "Check the product.",
            "dims (2**32, 2**32) accepted",
        ),
        Mistake(
            "the limit on bytes",
            _limited_bytes,
            "You compared the bytes with 2**60, and the limit is on the product of the dims.",
            "Compare the product, before you turn it into bytes.",
            "FormatError for dims (2**59,) of four bytes each",
        ),
        Mistake(
            "stopped at the first zero",
            _size_in_turn,
            "The product was checked after each dim, and from a zero on it stays 0, whatever follows.",
            "Leave the zeros out of the product that you check.",
            "dims (2**63, 0) refused, and (0, 2**32, 2**31) accepted",
        ),
        Mistake(
            "weights instead of bytes",
            lambda dims, weights, size: _size(dims, 1, 1),
            "You returned the number of weights; a block of `weights` of them takes `size` bytes.",
            "Return `product // weights * size`.",
            "15 where 60 bytes are expected",
        ),
        Mistake(
            "a scalar has no weight",
            lambda dims, weights, size: _size(dims, weights, size) if dims else 0,
            "A tensor without dims was given 0 bytes, and it holds one number.",
            "Begin the product with 1.",
            "0 bytes for dims ()",
        ),
    ),
)

# ---- fits_inside -----------------------------------------------------------------------------------------------------


def fits_inside(offset: Any, size: Any, left: Any) -> bool:
    """The reference: three numbers that wrap around -> whether offset + size, as it truly is, is at most left."""
    return bool(size <= left and offset <= left - size)


def fits_inside_oracle(offset: Any, size: Any, left: Any) -> bool:
    """With Python's integers, which do not wrap around."""
    return sum((int(offset), int(size))) <= int(left)


def _fits_cases(random: np.random.Generator) -> list[Case]:
    made = [(0, 8, 8), (4, 8, 12), (8, 0, 8), (0, 0, 0), (5, 8, 12), (9, 0, 8), (13, 0, 12), (0, 13, 12), (7, 7, 12)]
    made += [(2**64 - 8, 16, 100), (2**64 - 8, 8, 100), (16, 2**64 - 16, 100), (2**63, 2**63, 100), (2**63, 1, 100)]
    made += [(2**64 - 100, 2, 100), (90, 2**64 - 100, 100), (2**64 - 1, 2**64 - 1, 100)]
    made += [tuple(map(int, row)) for row in random.integers(0, 50, (6, 3))]
    return [tuple(np.uint64(number) for number in row) for row in made]


def _fits(offset: Any, size: Any, left: Any, rule: Any) -> bool:
    return bool(rule(int(offset), int(size), int(left)))


FITS_INSIDE = Exercise(
    name="fits_inside",
    lab="17",
    goal="Say whether a tensor of `size` bytes at `offset` lies inside `left` bytes, with numbers that wrap around.",
    minutes=6,
    difficulty="core",
    reference=fits_inside,
    oracle=fits_inside_oracle,
    cases=_fits_cases,
    hints=(
        "The numbers are `np.uint64`, as in C: `offset + size` may wrap around to something small. Subtract instead, "
        "and only what cannot go below zero.",
        "`size <= left and offset <= left - size`: the first half makes sure that the subtraction in the second one "
        "does not wrap.",
    ),
    why="this line is the whole difference between a refused file and memory of yours in somebody's hands.",
    mistakes=(
        Mistake(
            "the sum wraps around",
            partial(_fits, rule=lambda offset, size, left: offset + size & U64 <= left),
            "`offset + size` is a number of 64 bits, and the sum of two large ones comes out small.",
            "Do not add: `size <= left and offset <= left - size`.",
            "an offset of 2**64 - 8 accepted",
        ),
        Mistake(
            "only the offset",
            partial(_fits, rule=lambda offset, size, left: offset <= left),
            "You looked where the tensor begins, and it is its end that may lie outside.",
            "Compare `offset` with `left - size`.",
            "a tensor that begins inside and ends outside accepted",
        ),
        Mistake(
            "only the size",
            partial(_fits, rule=lambda offset, size, left: size <= left),
            "You asked whether the tensor is small enough, and not where it lies.",
            "Compare `offset` with `left - size` as well.",
            "a small tensor far outside accepted",
        ),
        Mistake(
            "each alone",
            partial(_fits, rule=lambda offset, size, left: offset <= left and size <= left),
            "Offset and size are each small enough, and together they are not.",
            "Compare `offset` with `left - size`, what remains once the tensor has its room.",
            "offset 7 and size 7 accepted in 12 bytes",
        ),
        Mistake(
            "the difference wraps around",
            partial(_fits, rule=lambda offset, size, left: offset <= left - size & U64),
            "`left - size` goes below zero if the size is larger, and wraps around to something huge.",
            "Ask first whether `size <= left`.",
            "a size of 13 in 12 bytes accepted",
        ),
        Mistake(
            "the other difference wraps around",
            partial(_fits, rule=lambda offset, size, left: size <= left - offset & U64),
            "`left - offset` goes below zero if the offset is larger, and wraps around to something huge.",
            "Ask first whether `offset <= left`.",
            "an offset of 13 in 12 bytes accepted",
        ),
        Mistake(
            "off by one at the end",
            partial(_fits, rule=lambda offset, size, left: offset + size < left),
            "You compared with `<`, and a tensor whose last byte is the file's last byte is inside.",
            "Compare with `<=`.",
            "False for 8 bytes in 8",
        ),
        Mistake(
            "as signed numbers",
            partial(_fits, rule=lambda offset, size, left: signed(offset) + signed(size) <= left),
            "The numbers were taken as signed: an offset of 2**63 is then negative, and every sum with it small.",
            "Offsets and sizes are unsigned; compare them as they are.",
            "an offset of 2**63 accepted",
        ),
    ),
)
