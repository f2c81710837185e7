"""Whether the tensors fill the data."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit, omit
from .tensor_entries import ITEM


def check_layout(entries, n_bytes):
    """Whether the tensors fill the data, each byte once.

    entries: {name: {"dtype", "shape", "data_offsets"}}, n_bytes: the size of the data
    ->   the names in the order in which the tensors lie there, an empty one before the one that begins at the same byte

    Raises ValueError for a hole, an overlap, bytes after the last tensor, a tensor after the end, and a shape whose
    size is not end - begin. ITEM[dtype] is the bytes of an element.
    """
    names = sorted(entries, key=lambda name: entries[name]["data_offsets"])
    at = 0
    for name in names:
        begin, end = entries[name]["data_offsets"]
        if begin != at:
            raise ValueError(f"{name!r} begins at {begin}, {at} is expected")
        if end - begin != ITEM[entries[name]["dtype"]] * math.prod(entries[name]["shape"]):
            raise ValueError(f"{name!r}: the shape does not fit its bytes")
        at = end
    if at != n_bytes:
        raise ValueError(f"the tensors end at {at}, the data at {n_bytes}")
    return names


def oracle(entries, n_bytes):
    """Every byte of the data is given to the tensors that claim it: each must have exactly one owner."""
    owners = [[] for _ in range(n_bytes)]
    starts, empty = ([[] for _ in range(n_bytes + 1)] for _ in range(2))
    for name, entry in entries.items():
        begin, end = entry["data_offsets"]
        wanted = ITEM[entry["dtype"]] * int(np.prod(entry["shape"], dtype=int))
        if not 0 <= begin <= end <= n_bytes or end - begin != wanted:
            raise ValueError(name)
        for place in range(begin, end):
            owners[place].append(name)
        (starts if end > begin else empty)[begin].append(name)
    if any(len(names) != 1 for names in owners):
        raise ValueError("a hole or an overlap")
    if any(empty[place] and owners[place - 1] == owners[place] for place in range(1, n_bytes)):
        raise ValueError("an empty tensor within another")
    return [name for pair in zip(empty, starts) for names in pair for name in names]


def cases(random):
    """Good layouts, in any order, with an empty tensor, random; then holes, overlaps, and sizes that do not fit."""

    def f32(begin, end, n=None):
        return {"dtype": "F32", "shape": [(end - begin) // 4 if n is None else n], "data_offsets": [begin, end]}

    sizes, drawn, at = 4 * random.integers(1, 9, 6), {}, 0
    for i in random.permutation(6).tolist():
        drawn[i], at = f32(at, at + int(sizes[i])), at + int(sizes[i])
    return [
        ({"a": f32(0, 4), "b": f32(4, 12)}, 12),
        ({}, 0),
        ({"last": f32(4, 8), "first": f32(0, 4)}, 8),
        ({"h": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}}, 12),
        ({"a": f32(0, 4), "b": f32(4, 8), "none": f32(4, 4)}, 8),
        ({f"w{i}": drawn[i] for i in range(6)}, at),
        ({"a": f32(0, 4), "b": f32(0, 4)}, 4),
        ({"a": f32(0, 8), "b": f32(4, 8)}, 8),
        ({"a": f32(0, 8), "none": f32(4, 4)}, 8),
        ({"a": f32(0, 4), "b": f32(8, 12)}, 12),
        ({"a": f32(4, 8)}, 8),
        ({"a": f32(0, 4)}, 12),
        ({"a": f32(0, 8)}, 4),
        ({"a": f32(0, 4, 2)}, 4),
        ({"a": f32(0, 8, 1)}, 8),
        ({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]}, "b": f32(0, 4)}, 4),
    ]


EXERCISE = Exercise(
    goal="Check that the tensors cover the data exactly, without holes or overlaps, and list them as they lie there.",
    reference=check_layout, oracle=oracle, cases=cases, minutes=8, difficulty="core",
    hints=(
        "Sort the names by where they begin and end. Then every tensor must begin where the one before it ended, the first at 0, and the last must end where the data ends.",
        '`sorted(entries, key=lambda name: entries[name]["data_offsets"])`; for each, compare begin with the end of the last, and end - begin with `ITEM[dtype] * math.prod(shape)`.',
    ),
    why="a byte that no tensor owns is a place to hide something; a byte that two own is a surprise.",
    mistakes=(
        Mistake("overlaps let through", edit("begin != at", "begin > at").edit("at = end", "at = max(at, end)"),
            cause="A tensor may not begin before the last one has ended.",
            cure="Demand that begin is equal to the end before.", see="a list where two tensors share bytes"),
        Mistake("holes let through", edit("begin != at", "begin < at"),
            cause="Between two tensors, or before the first, lie bytes that nobody owns.",
            cure="Demand that begin is equal to the end before, and 0 for the first.",
            see="a list where bytes 4 to 7 belong to nobody"),
        Mistake("bytes behind the last tensor let through", omit("if at != n_bytes"),
            cause="The data must end where the last tensor ends: a second file could hide after it, or the data may be cut off.",
            cure="Compare the last end with `n_bytes`.", see="a list for data of 12 bytes with a tensor of 4"),
        Mistake("shape and size never compared", omit("if end - begin"),
            cause="A tensor of two float32 needs eight bytes, and this one has four.",
            cure="Compare end - begin with the element's bytes times the product of the shape.",
            see="a list where a shape does not fit"),
        Mistake("the header's order demanded",
            edit('sorted(entries, key=lambda name: entries[name]["data_offsets"])', "list(entries)"),
            cause="A header may list the tensors in any order; only the data must be complete.",
            cure="Sort by the offsets first.", see="a good file refused because its last tensor is listed first"),
        Mistake("listed in the header's order", edit("return names", "return list(entries)"),
            cause="The names are asked for in the order of the data.",
            cure="Return the sorted names.", see="['last', 'first'] where ['first', 'last'] is expected"),
    ),
)
