"""The bytes of a tensor, if any file can hold them."""

import numpy as np  # noqa: F401 (for a mistake)

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, edit, omit


def tensor_size(dims, weights, size):
    """How many bytes a tensor takes.

    dims: tuple of 0 to 4 integers from 0 to 2**64 - 1; `weights` weights
        take `size` bytes (1 and 4 for F32, 32 and 34 for Q8_0), and dims[0]
        is a multiple of `weights`
    ->   an integer: 0 if a dim is 0. A tensor without dims has one weight,
         and `weights` is 1 then

    Raises FormatError if the dims that are not 0 multiply to 2**60 or more.
    """
    product = 1
    for dim in dims:
        if dim:
            product *= dim
    if product >= 2**60:
        raise FormatError(f"the dims {dims} multiply to more than any file holds")
    return 0 if 0 in dims else product // weights * size


def oracle(dims, weights, size):
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


def cases(random):
    """Dims that fit, dims that multiply to too much, zeros beside them, then random dims."""
    good = [((3, 5), 1, 4), ((32, 2), 32, 18), ((), 1, 2), ((0, 7), 1, 4), ((7, 3, 2), 1, 2), ((64, 3), 32, 34)]
    good += [((2**16, 2**16), 1, 4), ((2**53 + 1,), 1, 1), ((2**59,), 1, 4)]
    good += [((2**60 - 1,), 1, 1), ((2**30 - 1, 2**30 + 1), 1, 2), ((2, 3, 4, 5), 1, 4), ((64, 3, 1, 2), 32, 18)]
    good += [((7, 0), 1, 4), ((0, 2**60 - 1, 0), 1, 4), ((0,), 1, 4), ((32, 0, 2, 5), 32, 34), ((2**59, 2**0), 1, 2**5)]
    bad = [((2**16,) * 4, 1, 4), ((2**32, 2**32), 32, 18), ((2**63,), 1, 4), ((2**64 - 1, 3), 1, 4), ((2**63, 0), 1, 4)]
    bad += [((0, 2**32, 2**31), 1, 4), ((2**59, 2), 1, 2), ((2**60,), 1, 1), ((3, 3, 2**28, 2**29), 1, 4)]
    drawn = [(tuple(int(d) for d in row), 1, 4) for row in random.integers(1, 300, (3, 3))]
    return [*good, *bad, *drawn]


EXERCISE = Exercise(
    goal="Compute the bytes of a tensor from its dims, and refuse dims whose product no file can hold.",
    reference=tensor_size, oracle=oracle, cases=cases, minutes=6, difficulty="core",
    hints=(
        "Multiply the dims that are not 0. If the product reaches 2**60, refuse: a zero beside them excuses nothing.",
        "Then 0 bytes if a dim is 0; otherwise whole blocks, counted with `//`, times the bytes of one. A tensor without dims has one weight: begin with 1.",
    ),
    why="one product decides how much is allocated and how much is copied: it must not be two different numbers.",
    mistakes=(
        Mistake("nothing checked", omit("if product >= 2**60"),
            cause="The product is as large as the dims say, and somebody will try to allocate it.",
            cure="Raise `FormatError` if the product of the dims that are not 0 is 2**60 or more.",
            see="dims of 2**63 accepted"),
        Mistake("product in 32 bits",
            edit("            product *= dim", "            product = product * dim & (2**32 - 1)"),
            cause="The product was cut to 32 bits: 65,536 times 65,536 is then 0.",
            cure="Let the product grow, and compare it with 2**60.", see="0 bytes for dims (65536, 65536)"),
        Mistake("product in 64 bits",
            edit("            product *= dim", "            product = product * dim & (2**64 - 1)"),
            cause="The product was cut to 64 bits, and dims of 2**32 each give 0 bytes.",
            cure="Let the product grow, and compare it with 2**60.", see="0 bytes for dims (2**32, 2**32)"),
        Mistake("in floating point", edit("    product = 1\n", "    product = 1.0\n").edit(
                "product // weights * size", "int(product // weights * size)"
            ),
            cause="The product was computed as a float, which has 53 bits: large ones lose their last digits.",
            cure="Multiply Python's integers.", see="one byte too few for 2**53 + 1 weights"),
        Mistake("limit by logarithms", edit("product >= 2**60", "sum(np.log2(float(dim)) for dim in dims if dim) >= 60"),
            cause="A logarithm is rounded: just below 2**60 it is 60 already.",
            cure="Multiply integers, and compare the product.", see="FormatError for 2**60 - 1 weights"),
        Mistake("a zero excuses the others",
            edit("        if dim:\n            product *= dim", "        product *= dim"),
            cause="The product with a zero in it is 0, so the check never sees the dims beside it.",
            cure="Leave the zeros out of the product that you check.", see="dims (2**63, 0) accepted"),
        Mistake("negative dims accepted", edit(
                "    product = 1\n",
                "    dims = tuple((dim - 2**64 if dim >= 2**63 else dim) for dim in dims)\n    product = 1\n",
            ),
            cause="The dims were read as signed numbers, and a negative product is less than any limit.",
            cure="Dims are unsigned; take them as they are.", see="a negative number of bytes"),
        Mistake("each dim alone", edit("product >= 2**60", "max(dims, default=0) >= 2**60"),
            cause="You checked the dims one by one, and it is their product that is too large.",
            cure="Check the product.", see="dims (2**32, 2**32) accepted"),
        Mistake("the limit on bytes", edit("product >= 2**60", "product // weights * size >= 2**60"),
            cause="You compared the bytes with 2**60, and the limit is on the product of the dims.",
            cure="Compare the product, before you turn it into bytes.",
            see="FormatError for dims (2**59,) of four bytes each"),
        Mistake("stopped at the first zero", edit(
                "        if dim:\n            product *= dim",
                "        if dim == 0:\n            break\n        product *= dim",
            ),
            cause="The product was checked after each dim, and from a zero on it stays 0, whatever follows.",
            cure="Leave the zeros out of the product that you check.",
            see="dims (2**63, 0) refused, and (0, 2**32, 2**31) accepted"),
        Mistake("weights instead of bytes", edit("product // weights * size", "product"),
            cause="You returned the number of weights; a block of `weights` of them takes `size` bytes.",
            cure="Return `product // weights * size`.", see="15 where 60 bytes are expected"),
        Mistake("a scalar has no weight", edit("0 if 0 in dims", "0 if not dims or 0 in dims"),
            cause="A tensor without dims was given 0 bytes, and it holds one number.",
            cure="Begin the product with 1.", see="0 bytes for dims ()"),
    ),
)
