"""The bytes beyond 4 bits a weight, by reason."""

import math
from fractions import Fraction

from ...formats.gguf_lite.types import DType
from ...lab import Exercise, Mistake, edit, omit
from ...quantization.schemes import SCHEMES
from ..shared import counts, observed
from ..shared.gguf_lite_by_hand import Q4, Q8, tensor_bytes_oracle
from ..shared.names import ODD_NAMES

OVERHEAD = "header, metadata, descriptors"


def tensor_bytes(scheme, dims):
    """The bytes of a tensor, and those of its scales among them: (total, scales). Lab 12 is about these numbers."""
    dtype = DType(SCHEMES.index(scheme))
    return dtype.bytes_of(dims), dtype.scale_bytes(dims)


def what_costs(shapes, schemes, overhead):
    """The bytes of a file beyond 4 bits a weight, by reason.

    shapes: dict, name -> dims; schemes: dict, name -> scheme, "f32" for a
        name that it lacks; overhead: bytes
    ->   dict with three keys, always all of them:
         "more than 4 bits": what the values take beyond half a byte each;
         the scales are not counted here; not rounded, so it may end in .5
         "scales": the bytes of all scales
         "header, metadata, descriptors": overhead
    """
    costs = {"more than 4 bits": 0, "scales": 0, "header, metadata, descriptors": overhead}
    for name, dims in shapes.items():
        total, scales = tensor_bytes(schemes.get(name, "f32"), dims)
        costs["scales"] += scales
        costs["more than 4 bits"] += total - scales - math.prod(dims) / 2
    return costs


def oracle(shapes, schemes, overhead):
    """Exact fractions, type by type."""
    more = scales = Fraction(0)
    for name, dims in shapes.items():
        count = Fraction(tensor_bytes_oracle("f32", dims), 4)
        scheme = schemes.get(name, "f32")
        rows = dims[0] if dims else 0
        more += count * {"f32": 28, "f16": 12, Q8: 4, Q4: 0}[scheme] / 8
        scales += {"f32": 0, "f16": 0, Q8: 2 * rows, Q4: count / 32}[scheme]
    return {"more than 4 bits": float(more), "scales": float(scales), OVERHEAD: float(overhead)}


def cases(random):
    """A tensor of each scheme, one with an odd number of weights, then a small model."""
    rows = [2 * int(n) for n in random.integers(2, 15, 4)]
    model = {"tok_emb": (rows[0], 64), "pos_emb": (rows[1], 64), "fc1": (rows[2], 128), "fc2": (rows[3], 64)}
    odd = {name: (i, 64) for i, name in enumerate(ODD_NAMES, 1)}
    schemes = dict(zip(ODD_NAMES[:-1], (Q4, Q8, "f16", "f16", Q4, Q8, "f32") * 2))  # the last one has none
    rest = {"fc1.bias": (rows[2],), "ln_f": (64,)}
    return [
        ({"w": (2, 64)}, {"w": Q4}, 16),
        ({"w": (1, 64)}, {"w": Q8}, 16),
        ({"w": (2, 3)}, {"w": "f16"}, 40),
        ({"w": (3, 5, 1, 3, 3)}, {"w": "f16"}, 40),
        ({"w": (2, 64), "b": (2,)}, {"w": Q4}, 50),
        ({}, {}, 0),
        ({"s": (), "w": (3, 65)}, {"s": "f32", "w": Q8}, 70),
        ({"w": (70_001, 301 * 64), "v": (70_002, 40_001), "u": (70_001, 19_263)}, {"w": Q4, "v": Q8}, 90),  # more than 32 bits hold
        ({"a": (3,), "b": (1, 3)}, {"a": "f16"}, 55),
        ({"a": (2, 128), "ln": (5,), "b": (3, 64)}, {"a": Q8, "b": Q4, "ln": "f16"}, 100),
        ({"w": (4, 3)}, {}, 30),
        ({"w": (3, 0), "v": (2, 5)}, {"w": Q8}, 44),  # three scales, no values
        (model | rest | odd, schemes | {"tok_emb": Q8, "pos_emb": "f16", "fc1": Q4, "fc2": Q4}, 333),
    ]


def quantities(shapes, schemes, overhead):
    """What the costs are counted from."""
    return {"`overhead`": overhead} | counts.of_tensors(shapes, schemes)


EXERCISE = Exercise(
    goal="Account for every byte beyond 4 bits a weight: scales, tensors kept at more than 4 bits, and the overhead.",
    reference=what_costs, oracle=oracle, cases=cases, minutes=12, difficulty="stretch", tolerance=1e-6,
    observe=observed.values, quantities=quantities,
    hints=(
        "Each tensor's bytes fall into three heaps: half a byte for each value, its scales, and the rest. The rest is what more than 4 bits cost.",
        "`tensor_bytes` gives the total and the scales at once; `math.prod` gives the number of values; `/ 2` may leave a fraction, and that is right.",
    ),
    why="the ideal and these costs add up to the file, byte for byte: no byte is without a reason.",
    mistakes=(
        Mistake("scales counted twice", edit(" - scales", ""),
            cause="The scales are in `more than 4 bits` as well; `tensor_bytes` includes them.",
            cure="Subtract the scales from the tensor's bytes first.",
            see="a number at `more than 4 bits` for a tensor that is at 4 bits"),
        Mistake("no default scheme", edit('schemes.get(name, "f32")', "schemes[name]"),
            cause="A tensor that `schemes` does not name ends in a `KeyError`, and such a tensor is stored as f32.",
            cure='Use `schemes.get(name, "f32")`.', see="`KeyError` with the name of a tensor"),
        Mistake("4 bits taken for 4 bytes", edit("math.prod(dims) / 2", "math.prod(dims) * 4"),
            cause="`more than 4 bits` is what is left after four bytes for each weight, as float32 would take.",
            cure="Four bits are half a byte: subtract `math.prod(dims) / 2`.", see="a negative number"),
        Mistake("whole tensors, scales and all",
            edit("total - scales - math.prod(dims) / 2", 'total if schemes.get(name) != "q4_per_group_64" else 0'),
            cause="`more than 4 bits` has all bytes of every tensor that is not at 4 bits, but 4 bits of each value would be there anyway.",
            cure="Subtract its scales, which are counted already, and `math.prod(dims) / 2`.",
            see="a sum that is more than the file"),
        Mistake("whole tensors instead of what is beyond 4 bits", edit(
                "total - scales - math.prod(dims) / 2",
                'total - scales if schemes.get(name) != "q4_per_group_64" else 0',
            ),
            cause="`more than 4 bits` has all bytes of an f32, f16 or Q8 tensor's values, but 4 bits of each would be there anyway.",
            cure="Subtract `math.prod(dims) / 2` for each of them.", see="a sum that is more than the file"),
        Mistake("eight bits taken for free", edit(
                "total - scales - math.prod(dims) / 2",
                'total - scales - math.prod(dims) / 2 if schemes.get(name) != "q8_per_channel" else 0',
            ),
            cause="A tensor in `q8_per_channel` is quantized, and still takes 4 bits a value more than 4.",
            cure="Count it with 4 extra bits: half a byte a value.",
            see="`0.0` at key `'more than 4 bits'` for a Q8 tensor"),
        Mistake("float16 taken for free", edit(
                "total - scales - math.prod(dims) / 2",
                'total - scales - math.prod(dims) / 2 if schemes.get(name) != "f16" else 0',
            ),
            cause="A float16 value takes 12 bits more than 4.",
            cure="Count every tensor that is not at 4 bits.",
            see="`0.0` at key `'more than 4 bits'` for an f16 tensor"),
        Mistake("scales forgotten", omit('costs["scales"] += scales'),
            cause="The scales of the quantized tensors are in the file, two bytes each.",
            cure="Add them under `scales`.", see="`0.0` at key `'scales'`"),
        Mistake("scales in float32", edit('costs["scales"] += scales', 'costs["scales"] += 2 * scales'),
            cause="The scales take twice their bytes, as they would in float32.",
            cure="A scale is a float16: two bytes.", see="twice the expected number at key `'scales'`"),
        Mistake("only the tensors in schemes", edit(
                "        total, scales", "        if name not in schemes:\n            continue\n        total, scales"
            ),
            cause="A tensor that `schemes` does not name is in the file too, as f32.",
            cure='Go over `shapes`, and take `schemes.get(name, "f32")`.',
            see="too little at key `'more than 4 bits'` as soon as there is a bias"),
        Mistake("padding assumed", edit('descriptors": overhead', 'descriptors": math.ceil(overhead / 32) * 32'),
            cause="The overhead is a multiple of 32, rounded up: the question names padding, but this layout has none.",
            cure="Use the overhead as it is.", see="a multiple of 32 for the header"),
        Mistake("bits instead of bytes", edit('costs["scales"] += scales', 'costs["scales"] += 8 * scales').edit(
                "total - scales - math.prod(dims) / 2", "8 * (total - scales) - 4 * math.prod(dims)"
            ),
            cause="The numbers for values and scales are bits; the overhead is in bytes.",
            cure="Divide by 8.", see="answers that are eight times too large"),
    ),
)
