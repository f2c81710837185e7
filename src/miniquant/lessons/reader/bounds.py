"""The exercise of lab 07 that holds the descriptors against the file."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...core.errors import FormatError
from ...lab.spec import Case, Exercise, Mistake

# ---- check_bounds ----------------------------------------------------------------------------------------------------


def check_bounds(tensors: dict, data_size: int) -> int:
    """The reference: name -> (offset, size), and the size of the data section -> how many bytes belong to no tensor."""
    end, before = 0, ""
    for name, (offset, size) in sorted(tensors.items(), key=lambda item: item[1]):
        if offset + size > data_size:
            raise FormatError(f"{name!r} ends at {offset + size}, the data section at {data_size}", field="offset")
        if offset < end:
            raise FormatError(f"{name!r} begins at {offset}, inside {before!r}, which ends at {end}", field="offset")
        end, before = offset + size, name
    return data_size - sum(size for _, size in tensors.values())


def check_bounds_oracle(tensors: dict, data_size: int) -> int:
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


def _bounds_cases(random: np.random.Generator) -> list[Case]:
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


def _checked(
    tensors: dict,
    data_size: int,
    *,
    strict=False,
    sizes=True,
    ends=True,
    overlap=True,
    touch=False,
    sort=True,
    gaps=True,
) -> int:
    """Right unless told otherwise; each switch is a mistake."""
    end = 0
    for offset, size in sorted(tensors.values()) if sort else tensors.values():
        last = offset + size if sizes else offset
        if ends and (last >= data_size if strict else last > data_size):
            raise FormatError("refused")
        if overlap and (offset <= end and end if touch else offset < end):
            raise FormatError("refused")
        if not gaps and offset > end:
            raise FormatError("refused")
        end = offset + size
    return data_size - sum(size for _, size in tensors.values())


def _same_start(tensors: dict, data_size: int) -> int:
    starts = [offset for offset, _ in tensors.values()]
    if len(set(starts)) < len(starts):
        raise FormatError("refused")
    return _checked(tensors, data_size, overlap=False)


def _behind_the_last(tensors: dict, data_size: int) -> int:
    _checked(tensors, data_size)
    return data_size - max((offset + size for offset, size in tensors.values()), default=0)


CHECK_BOUNDS = Exercise(
    name="check_bounds",
    lab="07",
    goal="Refuse a tensor that lies outside the data section or over another one, and count the bytes that belong to "
    "none.",
    minutes=6,
    difficulty="core",
    reference=check_bounds,
    oracle=check_bounds_oracle,
    cases=_bounds_cases,
    hints=(
        "A tensor is outside if `offset + size > data_size`. Sort the tensors by their offsets: then a tensor can only "
        "lie over the one before it.",
        "Keep the `end` of the last tensor: the next may begin at `end` or later, not before. Any order in the file "
        "and gaps between tensors are fine; return `data_size` minus the sum of the sizes.",
    ),
    why="an offset is a promise made by a file that may lie, and this is where you stop believing it.",
    mistakes=(
        Mistake(
            "off by one at the end",
            partial(_checked, strict=True),
            "You compare with `>=`, and a tensor whose last byte is the section's last byte is inside.",
            "Compare with `>`.",
            "FormatError for the last tensor of a good file",
        ),
        Mistake(
            "size left out",
            partial(_checked, sizes=False),
            "You looked where the tensor begins, and it is its end that may lie outside.",
            "Compare `offset + size` with `data_size`.",
            "a tensor that begins inside and ends outside accepted",
        ),
        Mistake(
            "end not checked",
            partial(_checked, ends=False),
            "No tensor was held against the size of the data section.",
            "Refuse a tensor if `offset + size > data_size`.",
            "a tensor outside the file accepted",
        ),
        Mistake(
            "overlap not checked",
            partial(_checked, overlap=False),
            "Two tensors may claim the same bytes, and at most one of them is right.",
            "Refuse a tensor that begins before the one in front of it ends.",
            "overlapping tensors accepted",
        ),
        Mistake(
            "only equal starts",
            _same_start,
            "You refused two tensors that begin at the same byte, and they also overlap if one begins inside the "
            "other.",
            "Compare each start with the end of the tensor before it.",
            "a tensor that begins inside another one accepted",
        ),
        Mistake(
            "touching is overlapping",
            partial(_checked, touch=True),
            "You compare with `<=`, and a tensor may begin at the very byte where another one ended.",
            "Refuse only `offset < end`.",
            "FormatError for tensors that lie back to back",
        ),
        Mistake(
            "order of the descriptors",
            partial(_checked, sort=False),
            "You took the tensors in the order of their descriptors, and their data may come in any order.",
            "Sort by offset first.",
            "FormatError for a file whose second tensor comes first in the data",
        ),
        Mistake(
            "gaps refused",
            partial(_checked, gaps=False),
            "Bytes that belong to no tensor are padding, and a reader accepts it.",
            "Refuse overlap, and only count the gaps.",
            "FormatError for tensors with room between them",
        ),
        Mistake(
            "only the end counted",
            _behind_the_last,
            "You counted the bytes behind the last tensor and left out the gaps between tensors.",
            "Return `data_size` minus the sum of all sizes.",
            "right without gaps, too small with them",
        ),
    ),
)
