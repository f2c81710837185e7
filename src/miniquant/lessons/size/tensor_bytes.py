"""The bytes of one tensor."""

import math

from ...lab import Exercise, Mistake, body, edit
from ..shared import counts
from ..shared.gguf_lite_by_hand import Q4, Q8
from ..shared.gguf_lite_by_hand import tensor_bytes_oracle as oracle


def tensor_bytes(scheme, dims):
    """The bytes of a tensor in the data section, its scales included.

    scheme: "f32", "f16", "q8_per_channel" or "q4_per_group_64"; dims: tuple
        of ints
    ->   int; one of numpy's integers will do

    f32 and f16 take any dims, also () for a scalar. The other two take
    (out, in); for q4_per_group_64, ``in`` is a multiple of 64. Every dim
    may be 0; in q8_per_channel, a row of no values still has its scale.
    """
    values = math.prod(dims)
    if scheme == "f32":
        return 4 * values
    if scheme == "f16":
        return 2 * values
    if scheme == "q8_per_channel":
        return 2 * dims[0] + values
    return 2 * dims[0] * (dims[1] // 64) + values // 2


def cases(random):
    """One tensor of each scheme, scalars, random dims, three dims, none, then the embedding of a large model."""
    out, groups = (int(n) for n in random.integers(3, 9, 2))
    return [
        ("f32", (3,)),
        ("f16", (2, 3)),
        ("f32", ()),
        (Q8, (2, 3)),
        (Q8, (5, 2)),
        (Q4, (1, 64)),
        (Q4, (3, 128)),
        ("f32", (out, groups)),
        (Q4, (out, 64 * groups)),
        (Q8, (out, 64 * groups)),
        ("f16", (2, 3, 4)),
        ("f16", ()),
        ("f32", (0, 5)),
        (Q4, (0, 64)),
        ("f32", (600_001, 4097)),  # float32 does not hold the bytes, nor do 32 bits
        (Q4, (600_001, 4160)),
        ("f16", (2**27 + 1, 2**27 + 1)),  # a float64 does not hold the bytes
        (Q4, (2, 64)),
        (Q4, (5, 192)),
        (Q8, (3, 7)),
        (Q8, (4, 128)),
        ("f16", (7,)),
        ("f32", (2, 1, 2, 3, 5)),
        ("f16", (3, 0)),
        (Q8, (0, 3)),
        (Q8, (3, 0)),  # three scales, no values
        (Q4, (3, 0)),
    ]


EXERCISE = Exercise(
    goal="Return how many bytes a tensor takes in the data section, from its scheme and its dims alone.",
    reference=tensor_bytes, oracle=oracle, cases=cases, minutes=8, difficulty="core",
    quantities=counts.of_tensor,
    hints=(
        "Count two things apart from each other: the values, and the scales. Then multiply each by its own width in bytes.",
        "`math.prod` multiplies the numbers of a tuple, and gives 1 for an empty one; `//` keeps a number of bytes an int.",
    ),
    why="the reader needs this number to find the end of a tensor, and you need it to know a file's size in advance.",
    mistakes=(
        Mistake("bits instead of bytes", edit("4 * values", "32 * values")
            .edit("return 2 * values", "return 16 * values")
            .edit("2 * dims[0] + values", "16 * dims[0] + 8 * values")
            .edit("2 * dims[0] * (dims[1] // 64) + values // 2", "16 * dims[0] * (dims[1] // 64) + 4 * values"),
            cause="The result is eight times too large: it is the number of bits.",
            cure="Divide by 8: a file's size is counted in bytes.", see="an answer that is eight times too large"),
        Mistake("scales forgotten",
            edit("2 * dims[0] + values", "values").edit("2 * dims[0] * (dims[1] // 64) + ", ""),
            cause="A quantized tensor begins with its scales, and they are not in the sum.",
            cure="Add two bytes for every scale.",
            see="an answer that is a few bytes short for the two quantized types"),
        Mistake("scales in float32",
            edit("2 * dims[0] + values", "4 * dims[0] + values").edit("2 * dims[0] * (", "4 * dims[0] * ("),
            cause="The scales take twice their bytes, as they would in float32.",
            cure="The format stores scales as float16: two bytes each.",
            see="an answer that is a few bytes too large for the two quantized types"),
        Mistake("one scale a column",
            edit("2 * dims[0] + values", "2 * dims[1] + values"),
            cause="A channel is an output channel, which is a row: `dims[0]` of them, not `dims[1]`.",
            cure="Count `out` scales, and `in // 64` groups in each row.",
            see="the right answer for square matrices only"),
        Mistake("one scale a row in Q4", edit("2 * dims[0] * (dims[1] // 64)", "2 * dims[0]"),
            cause="In `q4_per_group_64` a row has one scale for each group of 64, not one for the whole row.",
            cure="Count `out * (in // 64)` scales.",
            see="the right answer for rows of 64, and too few bytes for wider ones"),
        Mistake("one scale for the whole tensor",
            edit("2 * dims[0] + values", "2 + values").edit("2 * dims[0] * (dims[1] // 64)", "2"),
            cause="Only one scale is in the result, for the whole tensor.",
            cure="Count one a row for `q8_per_channel`, one a group for `q4_per_group_64`.",
            see="an answer that is short by two bytes for each further row"),
        Mistake("a byte for every 4-bit value", edit("values // 2", "values"),
            cause="Every 4-bit value takes a whole byte in the result.",
            cure="Two of them share a byte: halve their number.",
            see="almost twice the expected answer for `q4_per_group_64`"),
        Mistake("half a byte for every 8-bit value", edit("2 * dims[0] + values", "2 * dims[0] + values // 2"),
            cause="The 8-bit values take half a byte each in the result, rounded down together, but an 8-bit value fills its byte.",
            cure="Divide by two for `q4_per_group_64` only.",
            see="about half the expected answer for `q8_per_channel`"),
        Mistake("a scalar takes nothing", edit("math.prod(dims)", "math.prod(dims) if dims else 0"),
            cause="Empty dims give 0, but a tensor without dims is a scalar: one value.",
            cure="Use `math.prod(dims)`: it is 1 where dims are `()`.", see="`0` where the dims are `()`"),
        Mistake("a float for a number of bytes", edit("values // 2", "values / 2"),
            cause="In `q4_per_group_64` the number of bytes is a float, as `/` gives it even where it divides evenly.",
            cure="Use `// 2`: a number of bytes is an int, and `seek` and `range` insist on that.",
            see="`34.0 (float)` where `34 (int)` is expected"),
        Mistake("two dims assumed", edit("math.prod(dims)", "dims[0] * dims[1]"),
            cause="The function asks for a second dim, but a bias has one dim, and a scalar has none.",
            cure="Use `math.prod(dims)` for any number of dims.", see="`IndexError: tuple index out of range`"),
        Mistake("dims added", edit("math.prod(dims)", "sum(dims)"),
            cause="A matrix of 2 by 3 holds 6 values, not 5.",
            cure="Multiply: `math.prod(dims)`.", see="an answer that is far too small for matrices"),
        Mistake("twice the scales in Q4", edit("// 64", "// 32"),
            cause="The scales of a Q4 tensor take twice their bytes, as with groups of 32; a group here has 64 weights and a scale 2 bytes.",
            cure="Count `out * (in // 64)` scales.", see="two bytes too many for each group"),
        Mistake("rounded up to 32", body("""
                bits = {"f32": 32, "f16": 16, "q8_per_channel": 8, "q4_per_group_64": 4}[scheme]
                scales = {"q8_per_channel": dims[:1], "q4_per_group_64": (*dims[:1], dims[-1] // 64)}.get(scheme) if dims else None
                size = math.prod(dims) * bits // 8 + (2 * math.prod(scales) if scales else 0)
                return -(-size // 32) * 32
            """),
            cause="The result is a multiple of 32, as with the padding of real GGUF, where 32 is the default; this layout has no padding.",
            cure="Return the bytes of the tensor itself.", see="answers that are all multiples of 32"),
    ),
)
