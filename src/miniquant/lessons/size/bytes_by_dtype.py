"""Where the bytes of the data go."""

import math

from ...lab import Exercise, Mistake, edit, omit
from ..shared import counts, observed
from ..shared.gguf_lite_by_hand import Q4, Q8, tensor_bytes_oracle
from . import predict_file_size as predict
from .tensor_bytes import tensor_bytes


def bytes_by_dtype(shapes, schemes):
    """The bytes of the data section by dtype, the scales apart.

    shapes: dict, name -> dims; schemes: dict, name -> scheme, for some of
        the names
    -> dict, five keys, each with a number of bytes: "f32", "f16",
       "q8_per_channel", "q4_per_group_64" (values only) and "scales"

    All five keys are always there; one that has no bytes is 0. A tensor
    that schemes does not name is stored as f32.
    """
    total = {"f32": 0, "f16": 0, "q8_per_channel": 0, "q4_per_group_64": 0, "scales": 0}
    for name, dims in shapes.items():
        scheme = schemes.get(name, "f32")
        n_scales = {"q8_per_channel": math.prod(dims[:1]), "q4_per_group_64": math.prod(dims) // 64}
        scales = 2 * n_scales.get(scheme, 0)
        total["scales"] += scales
        total[scheme] += tensor_bytes(scheme, dims) - scales
    return total


def oracle(shapes, schemes):
    """Type by type, from the oracle of `tensor_bytes`."""
    total = {"f32": 0, "f16": 0, Q8: 0, Q4: 0, "scales": 0}
    for name, dims in shapes.items():
        scheme = schemes.get(name, "f32")
        if scheme == Q8:
            scales = 2 * dims[0]
        elif scheme == Q4:
            scales = dims[0] * dims[1] // 32
        else:
            scales = 0
        total[scheme] += tensor_bytes_oracle(scheme, dims) - scales
        total["scales"] += scales
    return total


def cases(random):
    """The files of `predict_file_size`, then tensors that share a type, then embeddings."""
    return [(shapes, schemes) for shapes, schemes, _ in predict.cases(random)] + [
        ({"a": (1, 128), "b": (3, 64)}, {"a": Q4, "b": Q4}),
        ({"scalar": (), "w": (1, 64)}, {"w": Q4}),
        ({"tok_emb": (4, 8), "pos_emb": (2, 8)}, {"tok_emb": Q8, "pos_emb": "f16"}),
        (
            {"a": (2, 2), "b": (3,), "c": (5, 1), "d": (7,), "e": (2, 3), "f": (4,)},
            {"a": Q8, "b": "f32", "c": Q8, "d": "f16", "e": "f16"},
        ),
        ({"a": (3, 0), "b": (0, 5), "c": (2, 0)}, {"a": Q8, "c": Q4}),  # three scales, no values
    ]


EXERCISE = Exercise(
    goal="Sum the bytes of the data section by dtype, and count all the scales under a key of their own.",
    reference=bytes_by_dtype, oracle=oracle, cases=cases, minutes=8, difficulty="core",
    observe=observed.values, quantities=counts.of_tensors,
    hints=(
        "Begin with five zeros, and add each tensor's bytes in two places: its scales under one key, its values under another.",
        "`tensor_bytes` gives both together; the number of scales times two bytes is what you move to `scales`.",
    ),
    why="these five numbers answer the second question of the assignment: where does most of the file go?",
    mistakes=(
        Mistake("no default scheme", edit('schemes.get(name, "f32")', "schemes[name]"),
            cause="A tensor that `schemes` does not name ends in a `KeyError`, and such a tensor is stored as f32.",
            cure='Use `schemes.get(name, "f32")`.', see="`KeyError` with the name of a tensor"),
        Mistake("scales counted, not their bytes",
            edit('total["scales"] += scales', 'total["scales"] += scales // 2'),
            cause="What stands under `scales` is half of their bytes: it is how many there are.",
            cure="Each is a float16: multiply by two bytes.", see="half the expected number at key `'scales'`"),
        Mistake("scales left with their values", omit('total["scales"] += scales').edit(" - scales", ""),
            cause="The bytes of the scales stand under the type of the values that they belong to.",
            cure='Subtract them there, and add them under `"scales"`.', see="0 at key `'scales'`"),
        Mistake("scales counted twice", edit(" - scales", ""),
            cause="The scales are under `scales`, and they are also still in the bytes of the values.",
            cure="Subtract from `tensor_bytes` what you add under `scales`.",
            see="a sum that is larger than the data section"),
        Mistake("scales counted as f16", edit('total["scales"] += scales', 'total["f16"] += scales'),
            cause="Scales are float16 numbers, but they are not tensors of the type f16.",
            cure='Give them their own key, `"scales"`.', see="0 at key `'scales'`, and too much at `'f16'`"),
        Mistake("only the tensors in schemes", edit(
                "        scheme = schemes",
                "        if name not in schemes:\n            continue\n        scheme = schemes",
            ),
            cause="A tensor that `schemes` does not name is in the file too, as f32.",
            cure='Take `schemes.get(name, "f32")`.', see="0 at key `'f32'`"),
        Mistake("scales in float32", edit('total["scales"] += scales', 'total["scales"] += 2 * scales'),
            cause="The scales take twice their bytes, as they would in float32.",
            cure="A scale is a float16: two bytes.", see="twice the expected number at key `'scales'`"),
        Mistake("keys without bytes left out", edit("    return total", "    return {key: size for key, size in total.items() if size}"),
            cause="A key whose sum is 0 is left out, and whoever reads it gets a KeyError.",
            cure="Begin with all five keys at 0, and return all five.",
            see="`the keys differ`, with fewer keys on your side"),
        Mistake("values counted instead of bytes", edit("tensor_bytes(scheme, dims) - scales", "math.prod(dims)"),
            cause="Under each type stands how many values it has, whatever the width of one is.",
            cure="Multiply by the width: 4 bytes, 2, 1, and a half.", see="the right number for `q8_per_channel` only"),
        Mistake("bits instead of bytes", edit('total["scales"] += scales', 'total["scales"] += 8 * scales').edit(
                "tensor_bytes(scheme, dims) - scales", "8 * (tensor_bytes(scheme, dims) - scales)"
            ),
            cause="The numbers are bits.",
            cure="Divide by 8.", see="answers that are eight times too large"),
    ),
)
