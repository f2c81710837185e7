"""The bytes of all tensors, and the bits that a weight takes on average."""

import math

from ...lab import Exercise, Mistake, edit
from ..shared import observed

BLOCKS = {0: (1, 4), 2: (32, 18), 8: (32, 34)}  # type: the weights of a block, its bytes


def size_and_bits(tensors):
    """How many bytes the data of all tensors takes, and how many bits a
    weight takes on average.

    tensors: list of (shape, type code), at least one; shape: tuple in
        PyTorch's order, (out, in) or (n,), its last number a multiple of
        the weights of a block; type code: a key of BLOCKS
    ->   (bytes, bits): an integer, without padding; a float, 8 × bytes /
         number of weights of all tensors, not rounded
    """
    n_bytes = n_weights = 0
    for shape, code in tensors:
        weights, size = BLOCKS[code]
        n = math.prod(shape)
        n_weights += n
        n_bytes += n // weights * size
    return n_bytes, 8 * n_bytes / n_weights


def oracle(tensors):
    """Row by row, each with its count of blocks."""
    taken, found = 0, 0
    for shape, code in tensors:
        per, size = {0: (1, 4), 2: (32, 18), 8: (32, 34)}[code]
        rows = shape[0] if len(shape) == 2 else 1
        row = size * len(range(0, shape[-1], per))
        for _ in range(rows):
            taken += row
            found += shape[-1]
    return taken, taken / found * 8


def cases(random):
    """One block of each type, a row of several, types of which one prevails, a size that padding would change."""
    made = [
        [((1, 32), 2)],
        [((1, 32), 8)],
        [((3,), 0)],
        [((2, 64), 2), ((64,), 0)],
        [((4, 32), 8), ((1, 32), 2)],
        [((256, 256), 2), ((256, 256), 8), ((256,), 0), ((7, 5), 0)],
        [((5,), 0), ((5,), 0), ((1, 32), 2)],
        [((3, 96), 2), ((2, 96), 2)],
        [((2**11, 2**20), 2)],
        [((2**12, 2**20), 8), ((32,), 0)],
        [((2**10, 2**20), 0), ((2**10, 2**20), 2), ((2**10, 2**20), 8)],
        [((1, 1), 0), ((1,), 0), ((64,), 8)],
    ]
    drawn = [
        [((int(a), 32 * int(b)), (0, 2, 8)[int(c)]) for a, b, c in random.integers((1, 1, 0), (9, 9, 3), (12, 3))] for _ in range(3)
    ]
    return [(tensors,) for tensors in [*made, *drawn]]


def traits(tensors):
    """What is special about the tensors."""
    codes = {code for _, code in tensors}
    padded = [size_and_bits([tensor])[0] % 32 for tensor in tensors]
    return {
        "there is only one tensor": len(tensors) == 1,
        "all tensors have the same type": len(codes) == 1,
        "a tensor is F32": 0 in codes,
        "a tensor is Q4_0": 2 in codes,
        "a tensor is Q8_0": 8 in codes,
        "a tensor has one dim": any(len(shape) == 1 for shape, _ in tensors),
        "a matrix has more than one row": any(len(shape) == 2 and shape[0] > 1 for shape, _ in tensors),
        "the size of a tensor is not a multiple of 32": any(padded),
    }


def quantities(tensors):
    """What students take for the two numbers, by their place in the result."""
    n_bytes, bits = size_and_bits(tensors)
    weights = sum(math.prod(shape) for shape, _ in tensors)
    each = [size_and_bits([tensor]) for tensor in tensors]
    return {
        "the number of weights": weights,
        "the bytes with padding": sum(size + -size % 32 for size, _ in each),
        "the bytes of a weight on average": n_bytes / weights,
        "the mean of the tensors' bits": sum(bits for _, bits in each) / len(each),
        "the bits of a weight as an integer": int(bits),
        "the number of bits of all tensors": 8 * n_bytes,
        "the bits of a tensor on average": 8 * n_bytes / len(tensors),
    }


EXERCISE = Exercise(
    goal="Compute the bytes that llama.cpp prints in MiB as file size, and the bits per weight that it prints as BPW.",
    reference=size_and_bits, oracle=oracle, cases=cases, minutes=6, difficulty="core", tolerance=1e-9, traits=traits,
    quantities=quantities, observe=observed.values,
    hints=(
        "Each tensor has so many weights, these make so many blocks, and a block has so many bytes. Add up bytes and weights of all tensors before you divide.",
        "`math.prod` multiplies the dims of a shape. `//` divides without a rest: a row is a whole number of blocks.",
    ),
    why="the table of blocks and the tensor list are all that llama.cpp needs for this line.",
    mistakes=(
        Mistake("bytes a weight", edit("8 * n_bytes / n_weights", "n_bytes / n_weights"),
            cause="The second number counts bytes for a weight, and bits were asked for.",
            cure="Multiply by 8.", see="4.0 where 32.0 is expected"),
        Mistake("the scales left out", edit("n // weights * size", "n // weights * (size - 2 if weights > 1 else size)"),
            cause="Each block of Q8_0 or Q4_0 was counted without the two bytes of its scale.",
            cure="Take the bytes of a block from BLOCKS.", see="4.0 bits where 4.5 are expected"),
        Mistake("with padding", edit("n_bytes += n // weights * size", "n_bytes += n // weights * size + -(n // weights * size) % 32"),
            cause="Each tensor was rounded up to a multiple of 32 bytes, and padding is no data.",
            cure="Add the bytes of the blocks alone.", see="32 bytes for one block of Q4_0"),
        Mistake("the mean of the tensors",
            edit("n_bytes = n_weights = 0", "n_bytes = n_weights = total = 0")
            .edit("n_weights += n\n", "total += 8 * (n // weights * size) / n\n")
            .edit("8 * n_bytes / n_weights", "total / len(tensors)"),
            cause="The bits are the mean over the tensors, and a large tensor has more weights than a small one.",
            cure="Divide all bytes by all weights.", see="the bytes right, and the bits too near to those of the small tensors"),
        Mistake("only the last dim", edit("math.prod(shape)", "shape[-1]"),
            cause="One row of each matrix was counted.",
            cure="Multiply all dims of the shape.", see="right for one row, too small for more"),
        Mistake("bytes for every weight", edit("n // weights * size", "n * size"),
            cause="Every weight was given the bytes of a whole block.",
            cure="Divide the weights by the weights of a block first.", see="32 times too many bytes for Q4_0 and Q8_0"),
        Mistake("weights counted in 32 bits", edit("math.prod(shape)", "(math.prod(shape) + 2**31) % 2**32 - 2**31"),
            cause="The number of weights was kept in 32 bits with a sign, and a tensor may have 2**31 weights or more.",
            cure="Multiply with `math.prod`: Python's integers have no end.", see="right but for very large tensors"),
        Mistake("whole bits", edit("8 * n_bytes / n_weights", "8 * n_bytes // n_weights"),
            cause="`//` cut the bits off at the point.",
            cure="Divide with `/`.", see="4 where 4.5 is expected"),
        Mistake("the other order", edit("return n_bytes, 8 * n_bytes / n_weights", "return 8 * n_bytes / n_weights, n_bytes"),
            cause="The bits came first.",
            cure="Return the bytes, then the bits.", see="the two numbers exchanged"),
        Mistake("one-dimensional tensors left out", edit("        weights, size = BLOCKS[code]", "        if len(shape) == 1:\n            continue\n        weights, size = BLOCKS[code]").edit("8 * n_bytes / n_weights", "8 * n_bytes / max(n_weights, 1)"),
            cause="Norms and biases were left out, and they are in the file.",
            cure="Count every tensor.", see="too few bytes where a tensor has one dim"),
    ),
)
