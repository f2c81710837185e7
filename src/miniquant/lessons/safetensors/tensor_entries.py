"""Where each tensor lies in the data."""

import math

from ...lab import Exercise, Mistake, edit, omit
from .items import ITEM


def tensor_entries(tensors):
    """Plan the data of a file.

    tensors: {name: (dtype, shape)}, shape a tuple, such as {"a": ("F32",
        (2, 3))}; ITEM[dtype] is the bytes of an element
    ->   {name: {"dtype": ..., "shape": [...], "data_offsets": [begin,
         end]}}, the names in the same order; shape and offsets are lists.
         The first tensor begins at 0, each other one where the one before
         it ends; end - begin is its size in bytes, exact for every size.
    """
    entries, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        end = at + ITEM[dtype] * math.prod(shape)
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    return entries


def oracle(tensors):
    """The sizes first, dim by dim; each offset as the sum of the sizes before it."""
    sizes = []
    for dtype, shape in tensors.values():
        sizes.append(ITEM[dtype])
        for dim in shape:
            sizes[-1] *= dim
    ends = [sum(sizes[:n]) for n in range(len(sizes) + 1)]
    found = {}
    for i, (name, (dtype, shape)) in enumerate(tensors.items()):
        found[name] = {"dtype": dtype, "shape": [*shape], "data_offsets": ends[i : i + 2]}
    return found


def cases(random):
    """One tensor, several, of every dtype, a single number and an empty one, none, huge ones; random ones."""
    made = [
        {"a": ("F32", (2, 3))},
        {"a": ("F32", (1,)), "b": ("F32", (2,))},
        {"half": ("F16", (3,)), "weights": ("F32", (2, 2))},
        {"z": ("U8", (5,)), "a": ("I64", (2,)), "A": ("I64", (2,)), "a ": ("I64", (2,)), " é\n": ("BOOL", (3,)), "": ("I8", (1,))},
        {"step": ("F32", ()), "none": ("F32", (0, 4)), "w": ("BF16", (4, 4))},
        {"none": ("I64", (2, 0, 3)), "w": ("F32", (1,))},
        {"step": ("F16", ()), "w": ("F32", (2,))},
        {},
        {f"of {dtype}": (dtype, (3, 1, 2)) for dtype in ITEM},
        {"four dims": ("F16", (4, 3, 2, 5)), "w": ("I8", (1,))},
        {"huge": ("F32", (70000, 70000)), "after it": ("I8", (3,))},
        {"odd": ("U8", (2**31 + 1, 2**31 + 1)), "beyond 64 bits": ("I64", (2**33, 2**31)), "after them": ("I8", (3,))},
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


def traits(tensors):
    """What is special about the tensors of a file."""
    dtypes, shapes = [dtype for dtype, _ in tensors.values()], [shape for _, shape in tensors.values()]
    return {
        "a shape is empty": () in shapes,
        "a dim is 0": any(0 in shape for shape in shapes),
        "there is more than one tensor": len(tensors) > 1,
        "there are more than two tensors": len(tensors) > 2,
        "there is no tensor": not tensors,
        "there is a tensor": bool(tensors),
        "a shape has more than one dim": any(len(shape) > 1 for shape in shapes),
        "a shape has more than two dims": any(len(shape) > 2 for shape in shapes),
        "two dtypes differ": len(set(dtypes)) > 1,
        "a dtype is not F32": any(dtype != "F32" for dtype in dtypes),
        "an element has 8 bytes": any(ITEM[dtype] == 8 for dtype in dtypes),
        "an element has fewer than 4 bytes": any(ITEM[dtype] < 4 for dtype in dtypes),
        "the names are not in the order of the alphabet": list(tensors) != sorted(tensors),
        "a tensor has 2**63 bytes or more": any(ITEM[d] * math.prod(s) >= 2**63 for d, s in tensors.values()),
        "a tensor has 2**31 bytes or more": any(ITEM[d] * math.prod(s) >= 2**31 for d, s in tensors.values()),
    }


EXERCISE = Exercise(
    traits=traits,
    ordered=True,
    goal="Plan a safetensors file: for every tensor its dtype, its shape, and where its bytes begin and end.",
    reference=tensor_entries, oracle=oracle, cases=cases, minutes=7, difficulty="core", observe=entries_by_key,
    hints=(
        "Keep a position that starts at 0. A tensor takes the bytes of an element times the product of its shape, and the next one begins where it ends.",
        "`math.prod` multiplies the dims of a shape. Of an empty shape it gives 1, so a single number needs no special case.",
    ),
    why="offsets that count from the start of the data can be computed before the length of the header is known.",
    mistakes=(
        Mistake("offsets that begin at 8", edit("{}, 0", "{}, 8"),
            cause="The first tensor begins at 8. Offsets count from the start of the data, not of the file.",
            cure="Start at 0.", see="[8, 32] where [0, 24] is expected"),
        Mistake("a length in place of the end", edit("[at, end]", "[at, end - at]"),
            cause="The second number is the length of the tensor. It must be the offset at which the tensor ends.",
            cure="Write [begin, end].", see="the first tensor right, and all others with too small a second number"),
        Mistake("the last byte in place of the end", edit("[at, end]", "[at, end - 1]"),
            cause="The second number is one less than the end. The end is one more than the offset of a last byte, as in Python's slices.",
            cure="Leave out the - 1.", see="23 where 24 is expected"),
        Mistake("elements counted", edit("ITEM[dtype] * ", ""),
            cause="Your offsets count elements, and they must count bytes.",
            cure="Multiply by `ITEM[dtype]`.", see="6 where 24 is expected"),
        Mistake("four bytes for every dtype", edit("ITEM[dtype]", "4"),
            cause="Every element was given four bytes.",
            cure="Take the size from `ITEM`.", see="F32 right, all other dtypes wrong"),
        Mistake("every tensor at 0", omit("at = end"),
            cause="Every tensor begins at 0. Each must begin where the one before it ends.",
            cure="After each tensor, move the position to its end.", see="every first offset 0"),
        Mistake("aligned to eight bytes", edit("end = at", "at += -at % 8\n        end = at"),
            cause="A gap was left so that the next tensor begins at a multiple of eight; safetensors allows no gaps.",
            cure="Begin each tensor where the last one ended.", see="the second tensor at 8 where 4 is expected"),
        Mistake("the shape as a tuple", edit("list(shape)", "shape"),
            cause="JSON has lists and no tuples, so what you write and what you read back would differ.",
            cure="Write `list(shape)`.", see="(2, 3) where [2, 3] is expected"),
        Mistake("sorted by name", edit("tensors.items()", "sorted(tensors.items())"),
            cause="The tensors were planned in the order of their names. They are written in the order of the dict.",
            cure="Go through `tensors.items()` as it is.", see="another order of keys"),
        Mistake("the dims added", edit("math.prod(shape)", "sum(shape)"),
            cause="The dims were added. A tensor of shape (2, 3) has 2 · 3 elements.",
            cure="Multiply the dims.", see="[0, 20] where [0, 24] is expected"),
        Mistake("no bytes for a single number", edit("math.prod(shape)", "(math.prod(shape) if shape else 0)"),
            cause="A tensor of shape () is a single number. It has one element, not none.",
            cure="An empty product is 1.", see="[0, 0] where [0, 4] is expected"),
        Mistake("an element for an empty tensor", edit("math.prod(shape)", "max(1, math.prod(shape))"),
            cause="A tensor with a dim of 0 has no elements, and you gave it one.",
            cure="Take the product as it is.", see="an empty tensor with 4 bytes"),
        Mistake("only the first dim", edit("math.prod(shape)", "(*shape, 1)[0]"),
            cause="Only the first dim was counted.",
            cure="Multiply all dims.", see="[0, 8] where [0, 24] is expected"),
        Mistake("the shape reversed", edit("list(shape)", "list(shape)[::-1]"),
            cause="The dims were written in reverse. Safetensors has them in PyTorch's order.",
            cure="Keep their order.", see="[3, 2] where [2, 3] is expected"),
        Mistake("the offsets as a tuple", edit("[at, end]", "(at, end)"),
            cause="The two offsets are to be a list; JSON has no tuples.",
            cure="Use square brackets.", see="(0, 24) where [0, 24] is expected"),
        Mistake("offsets that are no integers", edit("ITEM[dtype] * math.prod(shape)", "ITEM[dtype] * float(math.prod(shape))"),
            cause="All offsets but the first 0 became floats.",
            cure="Compute with integers.", see="24.0 where 24 is expected"),
        Mistake("aligned to four bytes", edit("end = at", "at += -at % 4\n        end = at"),
            cause="A gap was left so that the next tensor begins at a multiple of four; safetensors allows no gaps.",
            cure="Begin each tensor where the one before it ends.", see="the second tensor at 8 where 6 is expected"),
        Mistake("only the first tensor", edit("        at = end\n", "        at = end\n        return entries\n"),
            cause="Only the first tensor is planned. A `return` inside the loop would end it at once.",
            cure="Return after the loop.", see="one entry where several are expected"),
    ),
)
