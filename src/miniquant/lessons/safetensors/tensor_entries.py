"""Where each tensor lies in the data."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit, omit

ITEM = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}  # bytes of an element


def tensor_entries(tensors):
    """Plan the data of a file.

    tensors: {name: (dtype, shape)}, such as {"a": ("F32", (2, 3))}; ITEM[dtype] is the bytes of an element
    ->   {name: {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}}, in the same order, back to back from 0
    """
    entries, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        end = at + ITEM[dtype] * math.prod(shape)
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    return entries


def oracle(tensors):
    """The sizes first, from numpy; the offsets as their running sum."""
    sizes = [np.zeros(shape, f"V{ITEM[dtype]}").nbytes for dtype, shape in tensors.values()]
    ends = np.cumsum([0, *sizes]).tolist()
    found = {}
    for i, (name, (dtype, shape)) in enumerate(tensors.items()):
        found[name] = {"dtype": dtype, "shape": [*shape], "data_offsets": ends[i : i + 2]}
    return found


def cases(random):
    """One tensor, several, of several dtypes, a single number and an empty one, none; random ones."""
    made = [
        {"a": ("F32", (2, 3))},
        {"a": ("F32", (1,)), "b": ("F32", (2,))},
        {"half": ("F16", (3,)), "weights": ("F32", (2, 2))},
        {"z": ("U8", (5,)), "a": ("I64", (2,)), "bits": ("BOOL", (3,))},
        {"step": ("F32", ()), "none": ("F32", (0, 4)), "w": ("BF16", (4, 4))},
        {},
    ]
    for _ in range(3):
        dtypes = random.choice(["F32", "F16", "I64", "U8"], 4).tolist()
        made.append(
            {f"w{i}": (dtype, tuple(random.integers(1, 6, 1 + i % 3).tolist())) for i, dtype in enumerate(dtypes)}
        )
    return [(tensors,) for tensors in made]


def entries_by_key(function, case):
    """The entries in their order; within an entry the order of the keys does not matter."""
    found = function(*case)
    if not isinstance(found, dict):
        return found
    return {name: dict(sorted(entry.items())) if isinstance(entry, dict) else entry for name, entry in found.items()}


EXERCISE = Exercise(
    goal="Plan a safetensors file: for every tensor its dtype, its shape, and where its bytes begin and end.",
    reference=tensor_entries, oracle=oracle, cases=cases, minutes=6, difficulty="core", observe=entries_by_key,
    hints=(
        "Keep a position that starts at 0. A tensor takes the bytes of an element times the product of its shape, and the next one begins where it ends.",
        "`end = at + ITEM[dtype] * math.prod(shape)`, then `[at, end]`, then `at = end`. `math.prod(())` is 1, so a single number needs no case of its own.",
    ),
    why="offsets that count from the start of the data can be written before anyone knows how long the header is.",
    mistakes=(
        Mistake("absolute offsets", edit("{}, 0", "{}, 8"),
            cause="The first tensor was put after the eight bytes of the length; offsets count from where the data begins.",
            cure="Start at 0.", see="[8, 32] where [0, 24] is expected"),
        Mistake("a length in place of the end", edit("[at, end]", "[at, end - at]"),
            cause="The second number is the length of the tensor, and it should be where the tensor ends.",
            cure="Write [begin, end].", see="the first tensor right, and all others with too small a second number"),
        Mistake("the last byte in place of the end", edit("[at, end]", "[at, end - 1]"),
            cause="The second number is the place of the last byte; the end is one further, as in Python's slices.",
            cure="Leave out the - 1.", see="23 where 24 is expected"),
        Mistake("elements counted", edit("ITEM[dtype] * ", ""),
            cause="These are numbers of elements, and offsets count bytes.",
            cure="Multiply by `ITEM[dtype]`.", see="6 where 24 is expected"),
        Mistake("four bytes for every dtype", edit("ITEM[dtype]", "4"),
            cause="Every element was given four bytes.",
            cure="Take the size from `ITEM`.", see="F32 right, all other dtypes wrong"),
        Mistake("every tensor at 0", omit("at = end"),
            cause="The position does not move on, so all tensors lie on top of each other.",
            cure="Set `at = end` after each.", see="every first offset 0"),
        Mistake("aligned to eight bytes", edit("end = at", "at += -at % 8\n        end = at"),
            cause="A gap was left so that the next tensor begins at a multiple of eight; safetensors allows no gaps.",
            cure="Begin each tensor where the last one ended.", see="the second tensor at 8 where 4 is expected"),
        Mistake("the shape as a tuple", edit("list(shape)", "shape"),
            cause="JSON has lists and no tuples; what you write and what you read back would differ.",
            cure="Write `list(shape)`.", see="(2, 3) where [2, 3] is expected"),
        Mistake("sorted by name", edit("tensors.items()", "sorted(tensors.items())"),
            cause="The tensors were planned in the order of their names, and they are written in the order of the dict.",
            cure="Go through `tensors.items()` as it is.", see="another order of keys"),
    ),
)
