"""Tensors inside their file, and none over another."""

from __future__ import annotations

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, edit, omit


def check_bounds(tensors, data_size):
    """Hold the tensors of a file against its data section.

    tensors: name -> (offset, size), both in bytes, size at least 1; data_size: bytes of the data section
    ->   how many bytes of the data section belong to no tensor

    Raises FormatError for a tensor that ends behind the data section, and for two tensors that overlap.
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
    """Tensors that fit in every order, then tensors outside and over each other, then random ones."""
    good = [
        ({"a": (0, 4)}, 4),
        ({"a": (0, 4), "b": (4, 6)}, 12),
        ({"b": (6, 4), "a": (0, 6)}, 10),
        ({"a": (2, 4), "b": (10, 4)}, 14),
        ({}, 3),
    ]
    bad = [
        ({"a": (0, 5)}, 4),
        ({"a": (0, 4), "b": (9, 1)}, 8),
        ({"a": (0, 4), "b": (3, 4)}, 20),
        ({"b": (4, 4), "c": (8, 2), "a": (0, 5)}, 20),
        ({"a": (0, 9), "b": (3, 2)}, 20),
        ({"a": (4, 4), "b": (4, 4)}, 20),
    ]
    gaps, sizes = random.integers(0, 4, 6).tolist(), random.integers(1, 9, 6).tolist()
    starts = [sum(gaps[: i + 1]) + sum(sizes[:i]) for i in range(6)]
    drawn = {f"t{i}": (starts[i], sizes[i]) for i in random.permutation(6).tolist()}
    return [*good, *bad, (drawn, sum(gaps) + sum(sizes) + 2)]


EXERCISE = Exercise(
    goal="Refuse a tensor that lies outside the data section or over another one, and count the bytes that belong to none.",
    reference=check_bounds, oracle=oracle, cases=cases, minutes=6, difficulty="core",
    hints=(
        "A tensor is outside if `offset + size > data_size`. Sort the tensors by their offsets: then a tensor can only lie over the one before it.",
        "Keep the `end` of the last tensor: the next may begin at `end` or later, not before. Any order in the file and gaps between tensors are fine; return `data_size` minus the sum of the sizes.",
    ),
    why="an offset is a promise made by a file that may lie, and this is where you stop believing it.",
    mistakes=(
        Mistake("off by one at the end", edit("offset + size > data_size", "offset + size >= data_size"),
            cause="You compare with `>=`, and a tensor whose last byte is the section's last byte is inside.",
            cure="Compare with `>`.", see="FormatError for the last tensor of a good file"),
        Mistake("size left out", edit("offset + size > data_size", "offset > data_size"),
            cause="You looked where the tensor begins, and it is its end that may lie outside.",
            cure="Compare `offset + size` with `data_size`.",
            see="a tensor that begins inside and ends outside accepted"),
        Mistake("end not checked", omit("if offset + size > data_size"),
            cause="No tensor was held against the size of the data section.",
            cure="Refuse a tensor if `offset + size > data_size`.", see="a tensor outside the file accepted"),
        Mistake("overlap not checked", omit("if offset < end"),
            cause="Two tensors may claim the same bytes, and at most one of them is right.",
            cure="Refuse a tensor that begins before the one in front of it ends.", see="overlapping tensors accepted"),
        Mistake("only equal starts", edit("end, before = 0", "end, before = -1")
            .edit("if offset < end", "if offset == end")
            .edit("end, before = offset + size, name", "end, before = offset, name"),
            cause="You refused two tensors that begin at the same byte, and they also overlap if one begins inside the other.",
            cure="Compare each start with the end of the tensor before it.",
            see="a tensor that begins inside another one accepted"),
        Mistake("touching is overlapping",
            edit("end, before = 0", "end, before = -1").edit("offset < end", "offset <= end"),
            cause="You compare with `<=`, and a tensor may begin at the very byte where another one ended.",
            cure="Refuse only `offset < end`.", see="FormatError for tensors that lie back to back"),
        Mistake("order of the descriptors",
            edit("sorted(tensors.items(), key=lambda item: item[1])", "tensors.items()"),
            cause="You took the tensors in the order of their descriptors, and their data may come in any order.",
            cure="Sort by offset first.", see="FormatError for a file whose second tensor comes first in the data"),
        Mistake("gaps refused", edit("if offset < end", "if offset != end"),
            cause="Bytes that belong to no tensor are padding, and a reader accepts it.",
            cure="Refuse overlap, and only count the gaps.", see="FormatError for tensors with room between them"),
        Mistake("only the end counted", edit("sum(size for _, size in tensors.values())", "end"),
            cause="You counted the bytes behind the last tensor and left out the gaps between tensors.",
            cure="Return `data_size` minus the sum of all sizes.", see="right without gaps, too small with them"),
    ),
)
