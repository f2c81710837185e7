"""Tensors inside their file, and no two that overlap."""

from __future__ import annotations

import itertools

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, body, edit, omit


def check_bounds(tensors, data_size):
    """Check the places of all tensors against the data section.

    tensors: name -> (offset, size), both in bytes, size at least 1, in any
        order, perhaps none; data_size: bytes of the data section
    ->   how many bytes of the data section belong to no tensor, an integer

    Raises FormatError for a tensor that ends after the data section, and
    for two tensors that overlap. Tensors that touch are legal, and so are
    gaps.
    """
    end, before = 0, ""
    for name, (offset, size) in sorted(tensors.items(), key=lambda item: item[1]):
        if offset + size > data_size:
            raise FormatError(f"{name!r} ends at {offset + size}, the data section at {data_size}", field="offset")
        if offset < end:
            raise FormatError(f"{name!r} begins at {offset}, inside {before!r}, which ends at {end}", field="offset")
        end, before = offset + size, name
    return data_size - sum(size for _, size in tensors.values())


def oracle(tensors, data_size):
    """Marks every byte with its owner."""
    owner: dict[int, str] = {}
    for name, (offset, size) in tensors.items():
        for byte in range(offset, offset + size):
            if byte not in range(data_size):
                raise FormatError(f"{name!r} takes byte {byte}, and the data section has {data_size}")
            if byte in owner:
                raise FormatError(f"byte {byte} belongs to {owner[byte]!r} and to {name!r}")
            owner[byte] = name
    return data_size - len(owner)


def cases(random):
    """Tensors that fit in every order, then tensors outside and tensors that overlap, then random ones."""
    good = [
        ({"a": (0, 4)}, 4),
        ({"a": (0, 4), "b": (4, 6)}, 12),
        ({"b": (6, 4), "a": (0, 6)}, 10),
        ({"a": (6, 4), "b": (0, 6)}, 10),
        ({"a": (2, 4), "b": (10, 4)}, 14),
        ({}, 2**53 + 3),
        ({}, 0),
        ({"a": (0, 5), "b": (5, 2)}, 9),
        ({"c": (7, 1), "a": (0, 3), "b": (3, 4)}, 8),
        ({"a": (3, 4), "b": (12, 5)}, 30),
        ({"b": (2**40 + 1, 2), "a": (1, 3)}, 2**41),
        ({"a": (5, 6)}, 11),
        ({"a": (0, 2), "b": (9, 3)}, 12),
        ({"a": (0, 1), "b": (2, 1), "c": (5, 4), "d": (10, 3)}, 15),
    ]
    bad = [
        ({"a": (0, 5)}, 4),
        ({"a": (0, 4), "b": (9, 1)}, 8),
        ({"a": (0, 4), "b": (3, 4), "c": (12, 2)}, 20),  # the gap is larger than what overlaps
        ({"b": (4, 4), "c": (8, 2), "a": (0, 5)}, 20),
        ({"a": (0, 9), "b": (3, 2)}, 20),
        ({"b": (3, 2), "a": (0, 9)}, 20),
        ({"a": (2**53, 1)}, 2**53),
        ({"a": (4, 4), "b": (4, 4)}, 20),
        ({"a": (2**64 - 4, 4), "b": (0, 4)}, 8),
        ({"a": (0, 8), "b": (8, 4), "c": (4, 4)}, 20),
        ({"a": (0, 2), "b": (2, 8), "c": (4, 1), "d": (10, 2)}, 20),
        ({"a": (0, 1)}, 0),
        ({"a": (0, 6)}, 4),
        ({"b": (0, 2), "a": (5, 5)}, 9),
    ]
    gaps, sizes = random.integers(0, 4, 6).tolist(), random.integers(1, 9, 6).tolist()
    starts = [sum(gaps[: i + 1]) + sum(sizes[:i]) for i in range(6)]
    drawn = {f"t{i}": (starts[i], sizes[i]) for i in random.permutation(6).tolist()}
    return [*good, *bad, (drawn, sum(gaps) + sum(sizes) + 2)]


def quantities(tensors, data_size):
    """What students count in the place of the bytes that belong to no tensor."""
    places = sorted(tensors.values())
    ends = [0, *(offset + size for offset, size in places)]
    gaps = [max(0, offset - max(ends[: i + 1])) for i, (offset, _) in enumerate(places)]
    after = max(0, data_size - max(ends))
    return {
        "the sum of the sizes": sum(size for _, size in places),
        "the number of bytes after the last tensor": after,
        "the number of bytes before the first tensor": places[0][0] if places else data_size,
        "the number of bytes between tensors": sum(gaps[1:]),
        "the largest end of a tensor": max(ends),
        "the number of gaps": sum(gap > 0 for gap in [*gaps, after]),
        "the number of gaps before a tensor": sum(gap > 0 for gap in gaps),
        "the largest gap": max([*gaps, after]),
        "the smallest gap, 0 where tensors touch": min([*gaps, after]),
        "the number of tensors": len(places),
        "the size of the tensor with the largest offset": places[-1][1] if places else 0,
        "the size of the tensor with the smallest offset": places[0][1] if places else 0,
        "the size of the largest tensor": max((size for _, size in places), default=0),
        "the sum of the offsets": sum(offset for offset, _ in places),
    }


def _overlap(a, b):
    """How many bytes belong to both."""
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


def traits(tensors, data_size):
    """What is wrong with the places, or special about them."""
    spans = [(offset, offset + size) for offset, size in tensors.values()]
    offsets, order = [begin for begin, _ in spans], sorted(spans)
    pairs = [(a, b) for a, b in itertools.combinations(order, 2) if _overlap(a, b)]
    neighbours = any(_overlap(a, b) for a, b in itertools.pairwise(spans))
    outside = [span for span in spans if span[1] > data_size]
    farthest = max((end for _, end in spans), default=None)
    good = not pairs and not outside and all(begin >= 0 for begin in offsets)
    return {
        "there are no tensors": not tensors,
        **{
            f"no tensor is outside or overlaps another, and {words}": good and holds
            for words, holds in {
                "there is a gap between two tensors": any(a[1] < b[0] for a, b in itertools.pairwise(order)),
                "there is a gap before the first tensor": bool(order) and order[0][0] > 0,
                "bytes follow the last tensor": bool(order) and farthest < data_size,
            }.items()
        },
        "two tensors overlap": bool(pairs),
        "two tensors overlap by one byte": any(_overlap(a, b) == 1 for a, b in pairs),
        "two tensors begin at the same byte": len(set(offsets)) < len(offsets),
        "a tensor lies inside another one": any(b[1] <= a[1] or a[0] == b[0] for a, b in pairs),
        "a tensor overlaps the one before it in the dict": neighbours,
        "two tensors overlap, and no two neighbours in the dict do": bool(pairs) and not neighbours,
        "a tensor ends after the data section": bool(outside),
        "a tensor begins inside the data section and ends after it": any(0 <= begin < data_size for begin, _ in outside),
        "a tensor begins inside the data section or where it ends, and ends after it": any(0 <= b <= data_size for b, _ in outside),
        "a tensor begins after the last byte of the data section": any(begin >= data_size for begin in offsets),
        "a tensor that ends after the data section is not the last in the dict": any(end > data_size for _, end in spans[:-1]),
        "the tensors are not in the order of their offsets": offsets != sorted(offsets),
        "the names in sorted order are not in the order of the offsets": [tensors[name][0] for name in sorted(tensors)] != sorted(offsets),
        "the largest end of a tensor is the end of the data section": farthest == data_size,
        "a tensor begins where another one ends": any(a[1] == b[0] for a, b in itertools.permutations(spans, 2)),
        "the data section is empty": data_size == 0,
        "there is exactly one tensor": len(tensors) == 1,
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Refuse a tensor that is outside the data section or overlaps another one, and count the bytes that belong to none.",
    reference=check_bounds, oracle=oracle, cases=cases, quantities=quantities, minutes=6, difficulty="core",
    hints=(
        "Look at the end of a tensor, not only at its beginning. If the tensors come in the order of their offsets, each one must be compared only with the one before it.",
        "`sorted` takes a `key`, a function that says what to sort by; for the items of this dict that is the pair of offset and size. `sum` adds the sizes.",
    ),
    why="an offset comes from a file that may be damaged, and after this check you can use it.",
    mistakes=(
        Mistake("off by one at the end", edit("offset + size > data_size", "offset + size >= data_size"),
            cause="A tensor whose last byte is the section's last byte was refused, and it is inside.",
            cure="Compare with `>`.", see="FormatError for the last tensor of a good file"),
        Mistake("size left out", edit("offset + size > data_size", "offset > data_size"),
            cause="A tensor that begins inside and ends outside was accepted.",
            cure="Compare `offset + size` with `data_size`.",
            see="a tensor that begins inside and ends outside accepted"),
        Mistake("end not checked", omit("if offset + size > data_size"),
            cause="Tensors outside the data section were accepted.",
            cure="Refuse a tensor if `offset + size > data_size`.", see="a tensor outside the file accepted"),
        Mistake("overlap not checked", omit("if offset < end"),
            cause="Two tensors that claim the same bytes were accepted.",
            cure="Refuse a tensor that begins before the previous one ends.", see="overlapping tensors accepted"),
        Mistake("only equal starts", edit("end, before = 0", "end, before = -1")
            .edit("if offset < end", "if offset == end")
            .edit("end, before = offset + size, name", "end, before = offset, name"),
            cause="Two tensors that begin at the same byte are refused, and others that overlap are not.",
            cure="Compare each start with the end of the tensor before it.",
            see="a tensor that begins inside another one accepted"),
        Mistake("touching is overlapping",
            edit("end, before = 0", "end, before = -1").edit("offset < end", "offset <= end"),
            cause="Tensors that touch were refused, and a tensor may begin at the byte where the one before it ends.",
            cure="Refuse only `offset < end`.", see="FormatError for tensors that touch"),
        Mistake("only the beginning compared", edit("offset + size > data_size", "offset >= data_size"),
            cause='A tensor that begins inside and ends outside was accepted.',
            cure='Compare `offset + size` with `data_size`.', see='a tensor that begins inside and ends outside accepted'),
        Mistake("touching refused from the start", edit("offset < end", "offset <= end"),
            cause='A tensor may begin where the one before it ends, and the first one at 0; both were refused.',
            cure='Refuse only `offset < end`.', see='FormatError for a tensor at offset 0'),
        Mistake("touching instead of overlapping", edit("offset < end", "offset == end"),
            cause="Tensors that touch are legal; only a tensor that begins inside another one is not.",
            cure='Refuse `offset < end`.', see='FormatError for tensors that touch'),
        Mistake("used bytes returned", edit("return data_size - sum", "return sum"),
            cause='The result is how many bytes belong to tensors, and the rest was asked for.',
            cure='Subtract the sum from `data_size`.', see='the sum of the sizes'),
        Mistake("only gaps before the last tensor", edit("return data_size -", "return end -"),
            cause='Bytes after the last tensor belong to no tensor, too.',
            cure='Subtract the sum of the sizes from `data_size`.', see='too small where bytes follow the last tensor'),
        Mistake("nothing returned", edit("return data_size - sum", "data_size - sum"),
            cause='The function checks and returns nothing.',
            cure='Return how many bytes belong to no tensor.', see='None where a number is expected'),
        Mistake("True returned", edit("return data_size - sum(size for _, size in tensors.values())", "return True"),
            cause='The function says whether the file is good; it must count the bytes that belong to no tensor.',
            cure='Return the count.', see='True where a number is expected'),
        Mistake("the sum compared", body("""
                total = sum(size for _, size in tensors.values())
                if total > data_size:
                    raise FormatError("too many bytes")
                return data_size - total
            """),
            cause='Tensors may be outside or overlap although the sum of their sizes is small enough.',
            cure="Look at each tensor's place.", see='overlapping tensors accepted'),
        Mistake("the end is the size", edit("end, before = offset + size, name", "end, before = size, name"),
            cause='A tensor ends at offset + size.',
            cure='Add the offset.', see='some overlaps accepted'),
        Mistake("sorted by size", edit("key=lambda item: item[1]", "key=lambda item: item[1][1]"),
            cause='Legal orders were refused, as if the tensors were sorted by size: neighbours are found by their offsets.',
            cure='Sort by offset.', see='FormatError for legal orders'),
        Mistake("order of the descriptors",
            edit("sorted(tensors.items(), key=lambda item: item[1])", "tensors.items()"),
            cause="Files were refused whose data lies in another order than the descriptors, and any order is legal.",
            cure="Sort by offset first.", see="FormatError for a file whose second tensor comes first in the data"),
        Mistake("gaps refused", edit("if offset < end", "if offset != end"),
            cause="Bytes that belong to no tensor are padding, and a reader accepts it.",
            cure="Refuse overlap, and only count the gaps.", see="FormatError for tensors with a gap between them"),
        Mistake("only the end counted", edit("sum(size for _, size in tensors.values())", "end"),
            cause="The result counts the bytes after the last tensor, and not the gaps before it.",
            cure="Return `data_size` minus the sum of all sizes.", see="right without gaps, too small with them"),
        Mistake("an end as a float", edit("if offset + size > data_size", "if float(offset) + size > data_size"),
            cause="Beyond 2**53 not every end is a float: a tensor that ends one byte too late may be accepted.",
            cure='Add integers.', see='a number where a FormatError is expected, for an offset of 2**53'),
        Mistake("a tensor inside a later one not found", body("""
                for number, (offset, size) in enumerate(tensors.values()):
                    if offset + size > data_size:
                        raise FormatError("it ends after the data section")
                    for begin, length in [*tensors.values()][number + 1 :]:
                        if offset <= begin < offset + size or offset < begin + length <= offset + size:
                            raise FormatError("they overlap")
                return data_size - sum(size for _, size in tensors.values())
            """),
            cause="A tensor inside a later one of the dict is not found if the later one begins before it and ends after it, as if only the two ends of the later tensor were looked at.",
            cure='Two tensors overlap if each begins before the other ends; or sort them by their offsets first.', see='a number where a FormatError is expected, for a small tensor before a large one'),
    ),
)
