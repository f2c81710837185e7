"""The bits of a whole file for each of its weights."""

import math
from fractions import Fraction

from ...lab import Exercise, Mistake, edit
from ..shared import observed
from ..shared.gguf_lite_by_hand import tensor_bytes_oracle


def effective_bits(size, shapes):
    """The bits per weight of a whole file.

    size: bytes of the file; shapes: dict, name -> dims of every tensor   ->   a float
    """
    return 8 * size / sum(math.prod(dims) for dims in shapes.values())


def oracle(size, shapes):
    """Counts the weights by the bytes that they would take as float32."""
    count = sum(len(range(tensor_bytes_oracle("f32", dims))) // 4 for dims in shapes.values())
    return float(Fraction(8 * size, count))


def cases(random):
    """A matrix, a bias, a scalar, then random matrices."""
    rows = [int(n) for n in random.integers(2, 30, 3)]
    return [
        (2, {"w": (2, 2)}),
        (100, {"w": (4, 8), "b": (4,)}),
        (9, {"scalar": (), "w": (3, 5)}),
        (sum(rows) * 70, {f"fc{i}.weight": (n, 64) for i, n in enumerate(rows)} | {"ln.weight": (64,)}),
    ]


EXERCISE = Exercise(
    goal="Return the effective bits per weight of a file: all its bits over all the numbers that the model has.",
    reference=effective_bits, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up", observe=observed.values,
    tolerance=1e-9,
    hints=(
        "A tensor holds as many numbers as the product of its dims; a scalar, with dims `()`, holds one.",
        "`8 * size` are the bits; divide them by the sum of `math.prod(dims)` over `shapes.values()`.",
    ),
    why="a 4-bit file has more than 4 bits a weight, and this number says at once how much more.",
    mistakes=(
        Mistake("two dims assumed", edit("math.prod(dims)", "dims[0] * dims[1]"),
            cause="`dims[0] * dims[1]` fails for a bias, which has one dim, and for a scalar, which has none.",
            cure="Use `math.prod(dims)` for any number of dims.", see="`IndexError: tuple index out of range`"),
        Mistake("whole bits only", edit("8 * size / sum", "8 * size // sum"),
            cause="`//` throws the fraction away, and in it stands what the scales cost.",
            cure="Divide with `/`.", see="whole numbers only"),
        Mistake("bytes per weight", edit("8 * size", "size"),
            cause="The size is in bytes, and a byte has eight bits.",
            cure="Multiply the size by 8.", see="an answer that is eight times too small"),
        Mistake("matrices only", edit("in shapes.values())", "in shapes.values() if len(dims) == 2)"),
            cause="Biases and norms are in the file, so their numbers belong into the count.",
            cure="Count every tensor, whatever its number of dims.",
            see="an answer that is too large as soon as there is a bias"),
        Mistake("dims added instead of multiplied", edit("math.prod(dims)", "sum(dims)"),
            cause="A matrix of 4 by 8 holds 32 numbers, not 12.",
            cure="Use `math.prod(dims)`.", see="an answer that is far too large for matrices"),
        Mistake("a scalar counts nothing", edit("in shapes.values())", "in shapes.values() if dims)"),
            cause="Empty dims were read as no numbers, but a scalar is one.",
            cure="Leave it to `math.prod(())`, which is 1.",
            see="an answer that is slightly too large where dims are `()`"),
        Mistake("upside down", edit("8 * size / sum(", "1 / (8 * size) * sum("),
            cause="These are weights per bit.",
            cure="Divide the bits by the number of weights.", see="`0.25` where `4.0` is expected"),
        Mistake("mean over tensors", edit("sum(math.prod(dims) for dims in shapes.values())", "len(shapes)"),
            cause="The bits were shared out among the tensors instead of their numbers.",
            cure="Divide by the number of weights, not by `len(shapes)`.", see="thousands of bits"),
    ),
)
