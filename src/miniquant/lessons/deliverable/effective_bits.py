"""The bits of a whole file for each of its weights."""

import math
from fractions import Fraction

from ...lab import Exercise, Mistake, edit
from ..shared import counts, observed
from ..shared.gguf_lite_by_hand import tensor_bytes_oracle
from ..shared.names import ODD_NAMES


def effective_bits(size, shapes):
    """The bits per weight of a whole file.

    size: bytes of the whole file; shapes: dict, name -> dims of every
        tensor, not all of them empty
    ->   a float, not rounded

    Every number of every tensor counts as a weight, a bias too.
    """
    return 8 * size / sum(math.prod(dims) for dims in shapes.values())


def oracle(size, shapes):
    """Counts the weights by the bytes that they would take as float32."""
    count = sum(tensor_bytes_oracle("f32", dims) // 4 for dims in shapes.values())
    return float(Fraction(8 * size, count))


def cases(random):
    """A matrix, a bias, a scalar, then random matrices."""
    rows = [int(n) for n in random.integers(2, 30, 3)]
    return [
        (2, {"w": (2, 2)}),
        (100, {"w": (4, 8), "b": (4,)}),
        (6, {"a": (2, 3), "b": (2, 3)}),
        (9, {"scalar": (), "w": (3, 5)}),
        (35, {"conv": (2, 3, 4, 5), "b": (2,)}),
        (7, {"empty": (0, 4), "w": (3, 2)}),
        (sum(rows) * 70, {f"fc{i}.weight": (n, 64) for i, n in enumerate(rows)} | {"ln.bias": (64,)}),
        (50, {"b": (6,), "w": (6, 4), "ln": (4,)}),
        (2**33, {"tok_emb.weight": (2**17, 2**15), "s": ()}),  # more weights than 32 bits count
        (1000, dict.fromkeys(ODD_NAMES, (20, 10)) | {"d": (3,)}),
        (3, {"w": (1, 7)}),
    ]


def quantities(size, shapes):
    """What the bits are divided by, and what might be."""
    return counts.of_shapes(shapes)


EXERCISE = Exercise(
    goal="Return the effective bits per weight of a file: all its bits over all the numbers that the model has.",
    reference=effective_bits, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up", observe=observed.values,
    tolerance=1e-9, quantities=quantities,
    hints=(
        "You need two totals: all bits of the file, and all numbers of the model. A byte has eight bits.",
        "`math.prod` counts the numbers of one tensor, also of a bias and of a scalar; `sum` over `shapes.values()` counts them all.",
    ),
    why="a 4-bit file has more than 4 bits a weight, and this number says how much more.",
    mistakes=(
        Mistake("two dims assumed", edit("math.prod(dims)", "dims[0] * dims[1]"),
            cause="The function asks for a second dim, but a bias has one dim, and a scalar has none.",
            cure="Use `math.prod(dims)` for any number of dims.", see="`IndexError: tuple index out of range`"),
        Mistake("whole bits only", edit("8 * size / sum", "8 * size // sum"),
            cause="The result is rounded down to whole bits, and the fraction counts: scales of groups of 64 cost a quarter of a bit.",
            cure="Divide with `/`.", see="whole numbers only"),
        Mistake("bytes per weight", edit("8 * size", "size"),
            cause="The result is eight times too small: the size is in bytes, and a byte has eight bits.",
            cure="Multiply the size by 8.", see="an answer that is eight times too small"),
        Mistake("matrices only", edit("in shapes.values())", "in shapes.values() if len(dims) == 2)"),
            cause="Only the numbers of matrices count in the result; biases and norms are in the file, too.",
            cure="Count every tensor, whatever its number of dims.",
            see="an answer that is too large as soon as there is a bias"),
        Mistake("dims added instead of multiplied", edit("math.prod(dims)", "sum(dims)"),
            cause="The bits are divided by the sum of all dims; a matrix of 4 by 8 holds 32 numbers, not 12.",
            cure="Use `math.prod(dims)`.", see="an answer that is far too large for matrices"),
        Mistake("a scalar counts nothing", edit("in shapes.values())", "in shapes.values() if dims)"),
            cause="A scalar does not count in the result, but it is one number.",
            cure="Use `math.prod(dims)`: it is 1 where dims are `()`.",
            see="an answer that is slightly too large where dims are `()`"),
        Mistake("upside down", edit("8 * size / sum(", "1 / (8 * size) * sum("),
            cause="The result is 1 divided by the right one: weights per bit.",
            cure="Divide the bits by the number of weights.", see="`0.25` where `4.0` is expected"),
        Mistake("mean over tensors", edit("sum(math.prod(dims) for dims in shapes.values())", "len(shapes)"),
            cause="The result is the bits divided by the number of tensors, not by the number of weights.",
            cure="Divide by the number of weights, not by `len(shapes)`.", see="thousands of bits"),
    ),
)
