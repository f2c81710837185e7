"""Before a file is written: where the data of every tensor begins."""

import math

import numpy as np  # noqa: F401 (a mistake uses it)

from ...lab import Exercise, Mistake, body, edit, omit


def tensor_offsets(shapes, dtypes):
    """Where each tensor begins, in bytes from the start of the data
    section; back to back, no padding.

    shapes: name -> dims, a tuple of integers from 0 on, () for a single
        number; it may be empty; dtypes: name -> code, 0 to 3
    ->   name -> offset, an integer, in the order of shapes; the sizes in
         bytes are those of the table above
    """
    offsets, at = {}, 0
    for name, dims in shapes.items():
        offsets[name] = at
        count = math.prod(dims)
        if dtypes[name] == 0:
            at += 4 * count
        elif dtypes[name] == 1:
            at += 2 * count
        elif dtypes[name] == 2:
            at += 2 * dims[0] + count
        else:
            at += 2 * (count // 64) + count // 2
    return offsets


def oracle(shapes, dtypes):
    """Bits for each element, and for each row or group: the next tensor begins where the last one ended."""
    offsets, bits = {}, 0
    for name, dims in shapes.items():
        offsets[name] = bits >> 3
        elements = 1
        for dim in dims:
            elements *= dim
        if dtypes[name] == 2:
            bits += dims[0] * (16 + 8 * dims[1])  # a scale and a row
        elif dtypes[name] == 3:
            bits += (elements >> 6) * (16 + 4 * 64)  # a scale and 64 nibbles
        else:
            bits += elements * (16 if dtypes[name] else 32)
    return offsets


def cases(random):
    """Every dtype, scalars and empty tensors, dtypes in another order, random shapes."""
    made = [
        ({"a": (2, 3), "b": (3,)}, {"a": 0, "b": 0}),
        ({"a": (2, 128), "b": (3,)}, {"a": 3, "b": 0}),
        ({"a": (5,), "b": (2, 2), "c": ()}, {"c": 0, "b": 0, "a": 1}),
        ({"a": (4, 64), "b": (68, 64), "c": (4, 64), "d": (1,)}, {"a": 2, "b": 3, "c": 0, "d": 0}),
        ({"scalar": (), "next": (3,), "none": (0,), "last": (1,)}, {"scalar": 0, "next": 1, "none": 0, "last": 0}),
        ({"only": (7,)}, {"only": 0}),
        ({}, {}),
        ({"scalar": (), "conv": (2, 3, 2, 2), "last": (1,)}, {"scalar": 1, "conv": 1, "last": 0}),
        ({"first": (5,), "scalar": (), "other": (), "last": (2,)}, {"first": 0, "scalar": 1, "other": 0, "last": 0}),
        ({"conv": (2, 3, 5), "narrow": (3, 10), "last": (1,)}, {"conv": 0, "narrow": 2, "last": 0}),
        ({"conv": (2, 3, 5), "none": (3, 0), "last": (1,)}, {"conv": 1, "none": 2, "last": 0}),
        ({"none": (3, 0), "zero": (0, 64), "eight": (0, 5), "last": (1,)}, {"none": 3, "zero": 3, "eight": 2, "last": 0}),
        ({"large": (2**20, 2**14), "last": (1,)}, {"large": 0, "last": 0}),
        ({"large": (2**32 + 1, 2**32 + 1), "last": (1,)}, {"large": 1, "last": 0}),
        ({"large": (2**27 + 1, 2**27 + 1), "last": (1,)}, {"large": 2, "last": 0}),
        ({"large": (2**26 + 1, 64 * (2**28 + 1)), "last": (1,)}, {"large": 3, "last": 0}),
    ]
    drawn = [(int(a), 64 * int(b)) for a, b in random.integers(1, 9, (8, 2))]
    shapes = dict(zip(("w", "W", "\tw", "wé", "w\n", "", "0", "w.weight"), drawn))
    return [*made, (shapes, {name: int(random.integers(0, 4)) for name in shapes})]


def quantities(shapes, dtypes):
    """For each tensor, what comes before it."""
    codes = {0: "F32", 1: "F16", 2: "Q8", 3: "Q4"}
    found = {f"the number of values in {codes[code]} before it": {} for code in codes}
    found |= {"the number of scales in Q8 before it": {}, "the number of scales in Q4 before it": {}}
    found |= {"the number of tensors before it": {}, "the number of single numbers before it": {}}
    found |= {"the number of columns in Q8 before it": {}, "the number of rows in Q4 before it": {}}
    found |= {"the number of its own values": {}, "the number of dims before it": {}}
    so_far = dict.fromkeys(found, 0)
    for name, dims in shapes.items():
        for words in found:
            found[words][name] = so_far[words]
        count, code = math.prod(dims), dtypes[name]
        found["the number of its own values"][name] = count
        so_far[f"the number of values in {codes[code]} before it"] += count
        so_far["the number of scales in Q8 before it"] += dims[0] if code == 2 else 0
        so_far["the number of columns in Q8 before it"] += dims[1] if code == 2 else 0
        so_far["the number of scales in Q4 before it"] += count // 64 if code == 3 else 0
        so_far["the number of rows in Q4 before it"] += dims[0] if code == 3 else 0
        so_far["the number of tensors before it"] += 1
        so_far["the number of single numbers before it"] += not dims
        so_far["the number of dims before it"] += len(dims)
    return found


def traits(shapes, dtypes):
    """What is special about the tensors; the size of the last one does not count."""
    before = list(shapes.items())[:-1]
    return {
        **{
            f"{name} tensor comes before another": any(dtypes[key] == code for key, _ in before)
            for code, name in enumerate(("an F32", "an F16", "a Q8", "a Q4"))
        },
        "a Q8 or a Q4 tensor comes before another": any(dtypes[key] > 1 for key, _ in before),
        "a single number comes before another tensor": any(not dims for _, dims in before),
        "a tensor of three dims or more comes before another": any(len(dims) > 2 for _, dims in before),
        "a tensor with a dim of 0 comes before another": any(0 in dims for _, dims in before),
        "`dtypes` has the names in another order than `shapes`": list(shapes) != [name for name in dtypes if name in shapes],
        "the names are not in sorted order": list(shapes) != sorted(shapes),
        "there are more than two tensors": len(shapes) > 2,
        "there are more than three tensors": len(shapes) > 3,
        "there is more than one tensor": len(shapes) > 1,
        "a tensor has 2**53 values or more": any(math.prod(dims) >= 2**53 for dims in shapes.values()),
        "a Q4 tensor with more than 64 values in a row comes before another": any(dtypes[key] == 3 and dims[1] > 64 for key, dims in before),
    }


EXERCISE = Exercise(
    ordered=True,
    goal="Find where each tensor's bytes begin, counted from the start of the data section, before a byte is written.",
    reference=tensor_offsets, oracle=oracle, cases=cases, quantities=quantities, traits=traits, minutes=6, difficulty="core",
    hints=(
        "A tensor begins where the one before it ends. Keep one running number and walk through the shapes.",
        "Store the number for a name before you add the size of its tensor. `math.prod` gives the count; `//` divides integers and gives an integer.",
    ),
    why="an offset that counts from the data section stays true when a name or a line of metadata grows.",
    mistakes=(
        Mistake("offset after the tensor",
            omit("offsets[name] = at").edit("+ count // 2", "+ count // 2\n        offsets[name] = at"),
            cause="Each offset is where its tensor ends, and it must be where it begins.",
            cure="Store the offset first, then add the size.",
            see="the first offset is not 0, and each is the one that belongs to the next tensor"),
        Mistake("the header counted", edit("{}, 0", "{}, 16"),
            cause="Every offset is 16 too large, as if the header were counted. Offsets count from the start of the data.",
            cure="Begin at 0, whatever comes before the data.", see="every offset 16 too large"),
        Mistake("descriptors counted",
            edit("offsets[name] = at", "at += 2 + len(name.encode()) + 1 + 4 * len(dims) + 1 + 8\n        offsets[name] = at"),
            cause="The bytes of each descriptor are counted, and offsets count from the start of the data.",
            cure="Add the sizes of the data only; the data section begins after all descriptors.",
            see="offsets that grow with the length of the names"),
        Mistake("scales forgotten", edit("2 * dims[0] + ", "").edit("2 * (count // 64) + ", ""),
            cause="The float16 scales of a quantized tensor take bytes too, before its values.",
            cure="Add two bytes for each scale: out of them for Q8, count / 64 for Q4.",
            see="right until the tensor after the first quantized one"),
        Mistake("scales of four bytes",
            edit("2 * dims[0]", "4 * dims[0]").edit("2 * (count // 64)", "4 * (count // 64)"),
            cause="A scale is stored as float16, which takes two bytes, and four are counted.",
            cure="Count two bytes a scale.", see="too much by two bytes a row or a group"),
        Mistake("one scale a column", edit("dims[0]", "dims[1]"),
            cause="Q8 has a scale for each row, dims[0] of them, and dims[1] are counted.",
            cure="Count 2 × dims[0] bytes of scales.", see="Q8 too large or too small, the rest right"),
        Mistake("a byte for each 4-bit value", edit("+ count // 2", "+ count"),
            cause="Two 4-bit values share a byte, and a byte is counted for each.",
            cure="Count count / 2 bytes of values for Q4.", see="Q4 almost twice too large"),
        Mistake("elements instead of bytes", body("""
                offsets, at = {}, 0
                for name, dims in shapes.items():
                    offsets[name] = at
                    at += math.prod(dims)
                return offsets
            """),
            cause="The offset counts elements, and it must count bytes: an F32 element takes four.",
            cure="Multiply by the bytes that an element takes.",
            see="the second offset is the number of elements of the first tensor"),
        Mistake("a float after a scalar", edit("math.prod(dims)", "np.prod(dims)"),
            cause="The offset after a single number is a float, and an offset is an integer: `np.prod(())` is the float 1.0. And `np.prod` counts in 64 bits, which very large dims exceed.",
            cure="Use `math.prod(dims)`, which stays with integers.",
            see="`4.0` where `4` is expected, after a tensor of shape ()"),
        Mistake("very large offsets not exact", edit("2 * (count // 64) + count // 2", "int(2 * (count / 64) + count / 2)"),
            cause="A very large offset after a Q4 tensor may be rounded, as after a division with `/`: above 2**53 a float does not hold every integer.",
            cure="Divide with `//`, which stays with integers.", see="the last digits of a very large offset differ"),
        Mistake("one Q4 scale a row", edit("2 * (count // 64)", "2 * dims[0]"),
            cause="Q4 has a scale for each group of 64, and one is counted for each row.",
            cure='Count count / 64 scales.', see='right for rows of 64, too small for longer rows'),
        Mistake("in the order of dtypes", edit("for name, dims in shapes.items():", "for name in dtypes:\n        dims = shapes[name]"),
            cause="The tensors lie in the order of `dtypes` here, and `shapes` gives their order.",
            cure="Loop over `shapes`, and look up the code in `dtypes`.",
            see="right until the two dicts have their names in another order"),
        Mistake("codes taken by position", edit("shapes.items():\n        offsets[name] = at", "shapes.items():\n        code = list(dtypes.values())[len(offsets)]\n        offsets[name] = at").edit("dtypes[name] == 0", "code == 0").edit("dtypes[name] == 1", "code == 1").edit("dtypes[name] == 2", "code == 2"),
            cause="The codes are taken in the order of `dtypes`, which may be another than that of `shapes`.",
            cure='Look the code up by name: `dtypes[name]`.', see='wrong where the two dicts have another order'),
        Mistake("a single number counted as nothing", edit("math.prod(dims)", "math.prod(dims) if dims else 0"),
            cause='A tensor with dims () is a single number: its count is 1.',
            cure='Use `math.prod(dims)`, which gives 1 for ().', see='the tensor after a single number begins too early'),
        Mistake("an empty tensor counted as one number", edit("math.prod(dims)", "max(1, math.prod(dims))"),
            cause='A tensor with a dim of 0 has no elements, and one is counted here.',
            cure='Use `math.prod(dims)` as it is.', see='the tensor after an empty one begins too late'),
        Mistake("empty tensors left out", edit("        offsets[name] = at\n", "        if 0 in dims:\n            continue\n        offsets[name] = at\n"),
            cause="A tensor with a dim of 0 is left out, and it has an offset like every other one.",
            cure='Store an offset for each name.', see='a name missing in the result'),
        Mistake("only the first two dims", edit("math.prod(dims)", "math.prod(dims[:2])"),
            cause='A tensor may have more than two dims, and all of them count.',
            cure='Multiply all dims: `math.prod(dims)`.', see='right for matrices, too small after a tensor of three dims'),
        Mistake("sizes as floats", edit("2 * (count // 64) + count // 2", "2 * (count / 64) + count / 2"),
            cause="The offset after a Q4 tensor is a float, as `/` gives it, and an offset is an integer.",
            cure='Divide with `//`.', see='`136.0` where `136` is expected'),
        Mistake("not added up", edit("at += 4", "at = 4").edit("at += 2 * count\n", "at = 2 * count\n").edit("at += 2 * dims", "at = 2 * dims").edit("at += 2 * (count", "at = 2 * (count"),
            cause="Each offset after the first is the size of the tensor before it alone. The sizes are not added up.",
            cure='Add with `+=`.', see='right for two tensors, too small from the third on'),
        Mistake("aligned to 32", edit("offsets[name] = at", "at = -(-at // 32) * 32\n        offsets[name] = at"),
            cause="Each offset is a multiple of 32, the usual alignment of real GGUF, and this layout has no padding.",
            cure="Let each tensor begin where the last one ends.", see="offsets that are all multiples of 32"),
    ),
)
