"""Before a file is written: where the data of every tensor begins."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit, omit


def tensor_offsets(shapes, dtypes):
    """Where each tensor begins, in bytes from the start of the data section; back to back, no padding.

    shapes: name -> dims; dtypes: name -> code   ->   name -> offset, in the order of shapes
    """
    offsets, at = {}, 0
    for name, dims in shapes.items():
        offsets[name] = at
        count = int(np.prod(dims))
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
    """A row or a group at a time: the next tensor begins where the last one ended."""
    offsets, at = {}, 0
    for name, dims in shapes.items():
        offsets[name] = at
        elements = 1
        for dim in dims:
            elements *= dim
        if dtypes[name] == 0:
            at += elements + elements + elements + elements
        elif dtypes[name] == 1:
            at += elements + elements
        elif dtypes[name] == 2:
            for _ in range(dims[0]):  # a scale and a row
                at += 2 + dims[1]
        else:
            for _ in range(elements // 64):  # a scale and 64 nibbles
                at += 2 + 32
    return offsets


def cases(random):
    """Every dtype, scalars and empty tensors, dtypes in another order, random shapes."""
    made = [
        ({"a": (2, 3), "b": (3,)}, {"a": 0, "b": 0}),
        ({"a": (5,), "b": (2, 2), "c": ()}, {"c": 0, "b": 0, "a": 1}),
        ({"a": (4, 64), "b": (4, 64), "c": (4, 64), "d": (1,)}, {"a": 2, "b": 3, "c": 2, "d": 0}),
        ({"scalar": (), "next": (3,), "none": (0,), "last": (1,)}, {"scalar": 0, "next": 1, "none": 0, "last": 0}),
        ({"only": (7,)}, {"only": 0}),
        ({"conv": (2, 3, 5), "narrow": (3, 10), "last": (1,)}, {"conv": 0, "narrow": 2, "last": 0}),
    ]
    shapes = {f"t{i}": (int(a), 64 * int(b)) for i, (a, b) in enumerate(random.integers(1, 9, (8, 2)))}
    return [*made, (shapes, {name: int(random.integers(0, 4)) for name in shapes})]


EXERCISE = Exercise(
    goal="Find where each tensor's bytes begin, counted from the start of the data section, before a byte is written.",
    reference=tensor_offsets, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        "Keep one running number `at`, which begins at 0: note it down for a tensor, then add that tensor's size.",
        "The sizes in bytes: F32 4 × count, F16 2 × count, Q8 2 × out + count, Q4 2 × (count / 64) + count / 2. `math.prod(dims)` is the count, and 1 for a scalar.",
    ),
    why="an offset that counts from the data section stays true when a name or a line of metadata grows.",
    mistakes=(
        Mistake("offset after the tensor",
            omit("offsets[name] = at").edit("+ count // 2", "+ count // 2\n        offsets[name] = at"),
            cause="The size was added before the offset was noted down, so each offset is the end of its tensor.",
            cure="Note `at` first, then add the size.",
            see="the first offset is not 0, and each is the one that belongs to the next tensor"),
        Mistake("counted from the start of the file", edit("{}, 0", "{}, 16"),
            cause="The count begins after the 16 bytes of the header; offsets count from the start of the data.",
            cure="Begin at 0, whatever comes before the data.", see="every offset 16 too large"),
        Mistake("descriptors counted",
            edit("offsets[name] = at", "at += 2 + len(name) + 1 + 4 * len(dims) + 1 + 8\n        offsets[name] = at"),
            cause="You added the bytes of each descriptor, and offsets count from the start of the data.",
            cure="Add the sizes of the data only; the data section begins after all descriptors.",
            see="offsets that grow with the length of the names"),
        Mistake("scales forgotten", edit("2 * dims[0] + ", "").edit("2 * (count // 64) + ", ""),
            cause="The float16 scales of a quantized tensor take room too, before its values.",
            cure="Add two bytes for each scale: out of them for Q8, count / 64 for Q4.",
            see="right until the tensor after the first quantized one"),
        Mistake("scales of four bytes",
            edit("2 * dims[0]", "4 * dims[0]").edit("2 * (count // 64)", "4 * (count // 64)"),
            cause="A scale is stored as float16, which takes two bytes, and you counted four.",
            cure="Count two bytes a scale.", see="too much by two bytes a row or a group"),
        Mistake("one scale a column", edit("dims[0]", "dims[1]"),
            cause="Q8 has a scale for each row, dims[0] of them, and you counted dims[1].",
            cure="Count 2 × dims[0] bytes of scales.", see="Q8 too large or too small, the rest right"),
        Mistake("a byte for each 4-bit value", edit("+ count // 2", "+ count"),
            cause="Two 4-bit values share a byte, and you counted a byte for each.",
            cure="Count count / 2 bytes of values for Q4.", see="Q4 almost twice too large"),
        Mistake("elements instead of bytes", body("""
                offsets, at = {}, 0
                for name, dims in shapes.items():
                    offsets[name] = at
                    at += int(np.prod(dims))
                return offsets
            """),
            cause="The offset counts elements, and a float takes four bytes of the file.",
            cure="Multiply by the bytes that an element takes.",
            see="the second offset is the number of elements of the first tensor"),
        Mistake("a float after a scalar", edit("int(np.prod(dims))", "np.prod(dims)"),
            cause="`np.prod(())` is the float 1.0, and an offset is a whole number.",
            cure="Use `math.prod(dims)`, or wrap the product in `int(...)`.",
            see="`4.0` where `4` is expected, after a tensor of shape ()"),
        Mistake("aligned to 32", edit("offsets[name] = at", "at = -(-at // 32) * 32\n        offsets[name] = at"),
            cause="Real GGUF begins each tensor at a multiple of 32 bytes, and this layout has no padding.",
            cure="Let each tensor begin where the last one ends.", see="offsets that are all multiples of 32"),
    ),
)
