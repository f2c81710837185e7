"""Whether the tensors fill the data."""

import functools
import math
import operator

from ...lab import Exercise, Mistake, edit, omit
from .items import ITEM
from .observed import names_in_order


def check_layout(entries, n_bytes):
    """Whether the tensors fill the data, each byte once.

    entries: {name: {"dtype": ..., "shape": [...], "data_offsets": [begin,
        end]}}, in any order; each dtype is in ITEM, dims and offsets are
        integers, no dim is below 0
    n_bytes: the size of the data, up to 2**40
    ->   a list of the names in the order of begin, [] if there are none;
         where several tensors begin at the same byte, those of 0 bytes come
         first, in any order

    Raises ValueError for a hole, an overlap, bytes after the last tensor,
    an offset below 0 or above n_bytes, a tensor of 0 bytes in the middle
    of another, and a shape whose size is not end - begin. ITEM[dtype] is
    the bytes of an element. A shape may be of any size: the product of its
    dims may be above 2**64.
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
    """The data is cut wherever a tensor begins or ends: each piece must have exactly one owner, which is no longer."""
    for name, entry in entries.items():
        begin, end = entry["data_offsets"]
        wanted = functools.reduce(operator.mul, entry["shape"], ITEM[entry["dtype"]])
        if not 0 <= begin <= end <= n_bytes or end - begin != wanted:
            raise ValueError(name)
    cuts = sorted({0, n_bytes, *(place for entry in entries.values() for place in entry["data_offsets"])})
    names = []
    for piece in zip(cuts, [*cuts[1:], n_bytes]):
        names += [name for name, entry in entries.items() if entry["data_offsets"] == [piece[0], piece[0]]]
        if piece[0] < piece[1]:
            owners = [name for name, entry in entries.items() if not (entry["data_offsets"][1] <= piece[0] or entry["data_offsets"][0] >= piece[1])]
            if len(owners) != 1 or entries[owners[0]]["data_offsets"] != [*piece]:
                raise ValueError("a hole or an overlap, or an empty tensor within another")
            names += owners
    return names


def cases(random):
    """Good layouts, in any order, with empty tensors, random; then holes, overlaps, and sizes that do not fit."""

    def f32(begin, end, n=None):
        return {"dtype": "F32", "shape": [(end - begin) // 4 if n is None else n], "data_offsets": [begin, end]}

    def other(dtype, n, begin, end):
        return {"dtype": dtype, "shape": [n], "data_offsets": [begin, end]}

    sizes, drawn, at = 4 * random.integers(1, 9, 6), {}, 0
    for i in random.permutation(6).tolist():
        drawn[i], at = f32(at, at + int(sizes[i])), at + int(sizes[i])
    return [
        ({"a": f32(0, 4), "b": f32(4, 12)}, 12),
        ({}, 0),
        ({"last": f32(4, 8), "first": f32(0, 4)}, 8),
        ({"h": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}}, 12),
        ({"w": {"dtype": "F32", "shape": [5, 4, 1, 13 * 10**9 + 1], "data_offsets": [0, 104 * 10**10 + 80]}}, 104 * 10**10 + 80),
        ({"a": f32(0, 4), "b": f32(4, 8), "none": f32(4, 4)}, 8),
        ({"a": f32(0, 4), "none": f32(0, 0)}, 4),
        ({"a": f32(0, 8), "b": f32(8, 16), "c": f32(16, 20)}, 20),  # as texts, 16 comes before 8
        ({"none": {"dtype": "F32", "shape": [3, 2**40, 0], "data_offsets": [4, 4]}, "a": f32(0, 4)}, 4),
        ({"none": {"dtype": "F32", "shape": [10**300, 10**300, 0], "data_offsets": [4, 4]}, "a": f32(0, 4)}, 4),
        ({"b": f32(0, 4), "z": f32(4, 4), "a": f32(4, 4), "w": f32(4, 8)}, 8),  # two empty ones at one byte
        ({"a": f32(0, 4), "one": {"dtype": "I8", "shape": [], "data_offsets": [7, 8]}, "b": other("BOOL", 3, 4, 7)}, 8),
        ({"last": other("F64", 1, 6, 14), "e": {"dtype": "BF16", "shape": [3, 0, 2], "data_offsets": [6, 6]}, "first": other("F16", 3, 0, 6)}, 14),
        (dict(zip(("w", "W", " w ", "w é", "w\n", ""), drawn.values())), at),
        ({"a": f32(0, 4), "b": f32(0, 4)}, 4),
        ({"a": f32(0, 8), "b": f32(4, 8)}, 8),
        ({"a": f32(0, 8), "none": f32(4, 4)}, 8),
        ({"a": f32(0, 8), "none": f32(4, 4), "b": f32(4, 8)}, 8),
        ({"a": f32(0, 4), "b": f32(8, 12)}, 12),
        ({"a": f32(4, 8)}, 8),
        ({"a": f32(0, 4)}, 12),
        ({"one": {"dtype": "F32", "shape": [], "data_offsets": [0, 8]}}, 8),
        ({"two": f32(0, 0, 2)}, 0),
        ({"a": f32(0, 8)}, 4),
        ({"a": f32(0, 2**33, 2**31 + 1)}, 2**33),  # a part in 10**9
        ({"a": f32(0, 8, 1)}, 8),
        ({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}, "b": f32(0, 4)}, 4),
        ({"a": f32(-4, 0)}, 0),
        ({}, 1),
        ({"a": f32(0, 4), "b": f32(4, 8, 2)}, 8),
        ({"a": f32(0, 4), "none": f32(8, 8)}, 4),
        ({"a": f32(4, 8), "b": f32(8, 12)}, 8),
        ({"a": f32(0, 4, 2), "b": f32(4, 8, 0)}, 8),
        ({"a": f32(0, 8), "b": f32(4, 8), "c": f32(12, 16)}, 16),
        ({"a": f32(0, 12), "b": f32(4, 8), "c": f32(8, 12)}, 12),
        ({"a": other("F16", 2, 0, 8), "b": other("F64", 1, 8, 16)}, 16),
        ({"w": {"dtype": "F16", "shape": [2, 2, 3], "data_offsets": [0, 24]}}, 24),
        ({"a": f32(0, 6, 1)}, 6),
        ({"none": f32(0, 0), "a": f32(0, 6, 2)}, 6),
        ({"none": f32(0, 4, 0)}, 4),
        ({"none": f32(0, 0)}, 0),
        ({"a": {"dtype": "U8", "shape": [2**16, 2**16], "data_offsets": [0, 0]}}, 0),  # 0 in 32 bits
        ({"a": {"dtype": "U8", "shape": [2**33, 2**31], "data_offsets": [0, 0]}}, 0),  # 0 in 64 bits
        ({"a": {"dtype": "F32", "shape": [2**31, 2**31], "data_offsets": [0, 0]}}, 0),
        ({"a": {"dtype": "U8", "shape": [2**62 + 1, 4], "data_offsets": [0, 4]}}, 4),
        ({"a": f32(0, 4), "b": f32(4, 0, 1)}, 0),
        ({"a": f32(0, 4), "none": f32(8, 8)}, 8),
        ({"a": other("U8", 1, 0, 1), "b": f32(4, 8)}, 8),
        ({"a": other("U8", 1, 0, 1), "b": other("U8", 1, 2, 3)}, 3),
        ({"a": other("U8", 2, 0, 2), "b": other("U8", 2, 1, 3)}, 3),
        ({"a": f32(4, 0, 1)}, 4),
    ]


def _is_right(entries, n_bytes):
    """Whether the tensors fill the data."""
    try:
        oracle(entries, n_bytes)
    except ValueError:
        return False
    return True


def traits(entries, n_bytes):
    """What is wrong with a layout, or special about it."""
    spans = {name: entry["data_offsets"] for name, entry in entries.items()}
    order = sorted(spans.values())
    sizes = {name: ITEM[entry["dtype"]] * math.prod(entry["shape"]) for name, entry in entries.items()}
    unfit = [name for name, (begin, end) in spans.items() if end - begin != sizes[name]]
    ends = [end for _, end in order]
    empty = [begin for begin, end in spans.values() if begin == end]
    inside = {name for name, (begin, end) in spans.items() if begin == end and any(a < begin < b for a, b in order)}
    rest = {name: entry for name, entry in entries.items() if name not in inside}
    return {
        "there are no tensors": not entries,
        "there are no tensors, and there is data": not entries and n_bytes > 0,
        "a shape does not fit its bytes": bool(unfit),
        "only one shape does not fit its bytes, that of the last tensor in the data": len(unfit) == 1 and spans[unfit[0]] == order[-1],
        "a shape is too small for its bytes": any(sizes[name] < spans[name][1] - spans[name][0] for name in unfit),
        "a shape is too large for its bytes": any(sizes[name] > spans[name][1] - spans[name][0] for name in unfit),
        "a tensor ends before it begins": any(end < begin for begin, end in spans.values()),
        "an offset is negative": any(offset < 0 for span in order for offset in span),
        "a tensor that ends where it begins is in the middle of another": bool(inside),
        "a tensor that ends where it begins is in the middle of another, and all else is right": bool(inside) and inside.isdisjoint(unfit) and _is_right(rest, n_bytes),
        "the first tensor in the data does not begin at 0": bool(order) and order[0][0] != 0,
        "bytes between two tensors belong to nobody": any(max(0, *ends[:i]) < min(begin, n_bytes) for i, (begin, _) in enumerate(order) if i),
        "two tensors share bytes": any(begin < end and begin < max(ends[:i]) for i, (begin, end) in enumerate(order) if i),
        "the tensors end (at 0, if there are none) before the data does": max(ends, default=0) < n_bytes,
        "a tensor ends beyond the data": any(end > n_bytes for end in ends),
        "a tensor that ends where it begins lies beyond the data": any(at > n_bytes for at in empty),
        "a tensor that ends where it begins and a longer one begin at the same byte": any(at == begin < end for at in empty for begin, end in order),
        "a tensor ends where it begins": bool(empty),
        "the entries are not in the order of their bytes": list(spans.values()) != order,
        "the names, in the order of their bytes, are not in that of the alphabet": sorted(spans, key=lambda name: (spans[name], name)) != sorted(spans),
        "a dtype is not F32": any(entry["dtype"] != "F32" for entry in entries.values()),
        "a shape has more than one dim": any(len(entry["shape"]) > 1 for entry in entries.values()),
        "a shape is empty": any(entry["shape"] == [] for entry in entries.values()),
        "there is more than one tensor": len(entries) > 1,
        "a shape needs 2**63 bytes or more": any(size >= 2**63 for size in sizes.values()),
        "there is exactly one tensor": len(entries) == 1,
        "there is a tensor": bool(entries),
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Check that the tensors cover the data exactly, without holes or overlaps, and list them in the order of their bytes.",
    reference=check_layout, oracle=oracle, cases=cases, minutes=12, difficulty="core", observe=names_in_order,
    hints=(
        "Go through the tensors in the order of their bytes. Each must begin where the one before it ended, the first at 0, and the last must end where the data ends.",
        "`sorted` takes a `key`. Lists are compared item by item: of two that begin at the same byte, the one that ends first comes first. `math.prod` multiplies a shape.",
    ),
    why="bytes that belong to no tensor can hide something, and bytes of two tensors can change two at once.",
    mistakes=(
        Mistake("overlaps let through", edit("begin != at", "begin > at").edit("at = end", "at = max(at, end)"),
            cause="A tensor was allowed to begin before the one before it ends.",
            cure="Begin must be equal to the end of the tensor before.", see="a list where two tensors share bytes"),
        Mistake("sorted by the beginning alone",
            edit('entries[name]["data_offsets"])', 'entries[name]["data_offsets"][0])'),
            cause="An empty tensor and the one after it begin at the same byte. Sorted by this byte alone, they stay in the order of the header.",
            cure="Sort by both offsets.", see="a good file refused because of an empty tensor"),
        Mistake("only the sum of the sizes",
            edit('        if begin != at:\n            raise ValueError(f"{name!r} begins at {begin}, {at} is expected")\n', "").edit("at = end", "at += end - begin"),
            cause="The sizes add up to the size of the data, and yet two tensors can share bytes while others belong to nobody.",
            cure="Compare where each tensor begins with where the one before it ends.",
            see="a list for two tensors that share bytes"),
        Mistake("holes let through", edit("begin != at", "begin < at"),
            cause="Bytes between two tensors, or before the first, belong to no tensor, and you accept that.",
            cure="Begin must be equal to the end of the tensor before, and 0 for the first.",
            see="a list where bytes 4 to 7 belong to nobody"),
        Mistake("bytes after the last tensor let through", omit("if at != n_bytes"),
            cause="The data must end where the last tensor ends. Otherwise something is hidden after it, or something is cut off.",
            cure="Compare the last end with `n_bytes`.", see="a list for data of 12 bytes with a tensor of 4"),
        Mistake("shape and size never compared", omit("if end - begin"),
            cause="A tensor of two float32 needs eight bytes. One with four was accepted.",
            cure="Compare end - begin with the element's bytes times the product of the shape.",
            see="a list where a shape does not fit"),
        Mistake("the order of the header expected",
            edit('sorted(entries, key=lambda name: entries[name]["data_offsets"])', "list(entries)"),
            cause="A header may list the tensors in any order. Where they lie is said by their offsets.",
            cure="Sort by the offsets first.", see="a good file refused because its last tensor is listed first"),
        Mistake("listed in the order of the header", edit("return names", "return list(entries)"),
            cause="The names are in the order of the header; the order of the data is asked for.",
            cure="Return the sorted names.", see="['last', 'first'] where ['first', 'last'] is expected"),
        Mistake("sorted by the end alone", edit('entries[name]["data_offsets"])', 'entries[name]["data_offsets"][1])'),
            cause="An empty tensor and the one before it end at the same byte. Sorted by this byte alone, they stay in the order of the header.",
            cure="Sort by both offsets.", see="a good file refused because of an empty tensor"),
        Mistake("sorted by name", edit('sorted(entries, key=lambda name: entries[name]["data_offsets"])', "sorted(entries)"),
            cause="The tensors were sorted by their names.",
            cure="Sort them by their offsets.", see="a good file refused because its names are in another order"),
        Mistake("empty tensors skipped", edit("        if begin != at", "        if begin == end:\n            continue\n        if begin != at"),
            cause="A tensor of 0 bytes was not checked, so it may be in the middle of another.",
            cure="Check it like every other tensor.", see="a list where an empty tensor is in the middle of another"),
        Mistake("the shape may be too small", edit("if end - begin != ITEM", "if end - begin < ITEM"),
            cause="A tensor with more bytes than its shape needs was accepted.",
            cure="The size must be equal to end - begin.", see="a list where a shape does not fit"),
        Mistake("four bytes for every dtype", edit('ITEM[entries[name]["dtype"]]', "4"),
            cause="Every element was given four bytes.",
            cure="Take the size from `ITEM`.", see="F32 right, and good files of other dtypes refused"),
        Mistake("the dims added", edit('math.prod(entries[name]["shape"])', 'sum(entries[name]["shape"])'),
            cause="The dims were added. A tensor of shape (2, 3) has 2 · 3 elements.",
            cure="Multiply the dims.", see="a good matrix refused"),
        Mistake("a tensor beyond the end let through", edit("if at != n_bytes", "if at < n_bytes"),
            cause="You accept a tensor that reaches beyond the data.",
            cure="The last tensor must end exactly where the data ends.", see="a list for 4 bytes of data with a tensor of 8"),
        Mistake("data left over let through", edit("if at != n_bytes", "if at > n_bytes"),
            cause="You accept data that goes on after the last tensor.",
            cure="The last tensor must end exactly where the data ends.", see="a list for 12 bytes of data with a tensor of 4"),
        Mistake("checked up to the first", edit("        at = end\n", "        at = end\n        return names\n"),
            cause="Only the first tensor is checked. A `return` inside the loop would end it at once.",
            cure="Return after the loop.", see="a list for two tensors that share bytes"),
        Mistake("yes in place of the names", edit("return names", "return True"),
            cause="You return True, and the list of names is asked for.",
            cure="Return the sorted names.", see="True where a list is expected"),
        Mistake("in reverse", edit("return names", "return names[::-1]"),
            cause="The names are in the reverse order of the data.",
            cure="Return them as you sorted them.", see="['b', 'a'] where ['a', 'b'] is expected"),
        Mistake("sizes in 32 bits", edit('math.prod(entries[name]["shape"])', '(math.prod(entries[name]["shape"]) % 2**32)'),
            cause="Numbers of elements of 2**32 and more wrap around, as in uint32: a shape of 65536 times 65536 counts as 0 elements.",
            cure="Use `math.prod`: Python's integers have no end.", see='a list of names for a huge shape on 0 bytes'),
        Mistake("sizes in 64 bits", edit('math.prod(entries[name]["shape"])', '(math.prod(entries[name]["shape"]) % 2**64)'),
            cause="Numbers of elements of 2**64 and more wrap around, as in numpy's uint64: a shape of 2**33 times 2**31 counts as 0 elements.",
            cure="Use `math.prod`: Python's integers have no end.", see="a list of names for a shape whose product is 2**64"),
    ),
)
