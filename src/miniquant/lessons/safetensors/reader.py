"""The exercises of lab 03 on reading safetensors without trust: the header, and where the tensors lie."""

from __future__ import annotations

import json
import math
import struct
from functools import partial
from typing import Any

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from .writer import ITEM, Entries, tensor_entries

# ---- read_safetensors_head -------------------------------------------------------------------------------------------


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def read_safetensors_head(data: bytes) -> tuple[dict[str, Any], int]:
    """The reference: a file's bytes -> (header, where the data begins)."""
    return _read(data)


def read_oracle(data: bytes) -> tuple[dict[str, Any], int]:
    """The length by its digits; the JSON by the decoder's own pieces, duplicates found by counting."""
    if len(data) < 8:
        raise ValueError("too short")
    length = sum(data[place] * 256**place for place in range(8))
    raw = data[8 : 8 + length]
    if len(raw) != length or raw[:1] != b"{":
        raise ValueError("no header")
    text = raw.decode("utf-8").rstrip(" \t\r\n")
    pairs: list[list[tuple[str, Any]]] = []
    header, end = json.JSONDecoder(object_pairs_hook=lambda found: pairs.append(found) or dict(found)).raw_decode(text)
    if end != len(text) or any(len({key for key, _ in found}) != len(found) for found in pairs):
        raise ValueError("not one object, or a key twice")
    return header, 8 + length


def _file(text: str | bytes, data: bytes = b"", length: int | None = None) -> bytes:
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def _read_cases(random: np.random.Generator) -> list[Case]:
    entry = '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    good = [
        _file("{}"),
        _file('{"a":1}   ', b"data"),
        _file(f'{{"a":{entry}}}', b"\0\0\x80?"),
        _file('{"__metadata__":{"format":"pt"},"é":1}', b"{more}"),
    ]
    good += [
        _file(
            json.dumps(tensor_entries({f"w{i}": ("F32", (int(n),)) for i, n in enumerate(random.integers(1, 99, 5))}))
        )
    ]
    bad = [
        b"",
        b"\x02\0\0\0\0\0\0",
        _file("{}", length=3),
        _file("{}", length=2**63 + 2),
        _file(' {"a":1}'),
        _file("[]"),
        _file('{"a":'),
        _file('{"a":1,"a":2}'),
        _file(f'{{"a":{entry},"b":{entry},"a":{entry}}}', bytes(8)),
        _file('{"__metadata__":{"x":"1","x":"2"}}'),
        _file(b'{"\xff":1}'),
        _file('{"a":1}\0'),
    ]
    return [(data,) for data in [*good, *bad]]


def _read(
    data: bytes,
    *,
    form: str = "<Q",
    repeats: bool = False,
    trusts_length: bool = False,
    any_start: bool = False,
    short: bool = False,
    start: int = 8,
    stripped: bool = False,
    code: str = "utf-8",
) -> tuple[dict[str, Any], int]:
    if len(data) < 8 and not short:
        raise ValueError("too short")
    (length,) = struct.unpack(form, data[: struct.calcsize(form)])
    raw = data[8 : 8 + length]
    if len(raw) < length and not trusts_length:
        raise ValueError("the header is longer than the file")
    if not raw.startswith(b"{") and not any_start:
        raise ValueError("a header begins with {")
    header = json.loads(raw.decode(code), object_pairs_hook=dict if repeats else _unique)
    size = len(raw.rstrip(b" ")) if stripped else length
    return header, start + size


READ_SAFETENSORS_HEAD = Exercise(
    name="read_safetensors_head",
    lab="03",
    goal="Read the header of a safetensors file, say where the data begins, and refuse whatever is not right.",
    minutes=10,
    difficulty="core",
    reference=read_safetensors_head,
    oracle=read_oracle,
    cases=_read_cases,
    hints=(
        "Check before you use: eight bytes for the length, a length that fits the file, a `{` at the start. "
        "`json.loads` "
        "raises a ValueError by itself for what is no JSON, and says nothing about a key that stands twice.",
        "`json.loads(text, object_pairs_hook=f)` hands every object to `f` as a list of pairs: raise a ValueError if "
        "`dict(pairs)` is shorter than `pairs`, else return it.",
    ),
    why="two readers that disagree about which of two equal keys counts see two models in one file.",
    mistakes=(
        Mistake(
            "the last of two equal keys wins",
            partial(_read, repeats=True),
            "`json.loads` keeps the last of two equal keys and forgets the other without a word.",
            "Give it an `object_pairs_hook` that compares lengths.",
            "a header where a ValueError is expected, because a name stands twice",
        ),
        Mistake(
            "the length believed",
            partial(_read, trusts_length=True),
            "A slice beyond the end of the file is no error in Python: it is just shorter.",
            "Compare the length with what the file has left.",
            "a header read from a file that says it is longer than it is",
        ),
        Mistake(
            "struct's own error",
            partial(_read, short=True),
            "For a file of fewer than eight bytes `struct.unpack` raises `struct.error`, which is no ValueError.",
            "Look at `len(data)` first.",
            "a struct.error where a ValueError is expected",
        ),
        Mistake(
            "any beginning accepted",
            partial(_read, any_start=True),
            "The header must begin with `{`: a space before it, or a list, is malformed.",
            "Check the first byte.",
            "a result for a header that begins with a space",
        ),
        Mistake(
            "32-bit length",
            partial(_read, form="<I"),
            "Four of the eight bytes of the length were read; what stands in the others was overlooked.",
            "Unpack eight bytes, as `Q`.",
            "a header read from a file whose length is enormous",
        ),
        Mistake(
            "big-endian",
            partial(_read, form=">Q"),
            "Read with the most significant byte first, a length of 2 is more than a million terabytes.",
            "Unpack with `<Q`.",
            "every good file refused as too short",
        ),
        Mistake(
            "the eight bytes of the length forgotten",
            partial(_read, start=0),
            "The data begins behind the header *and* behind the eight bytes in front of it.",
            "Return 8 + length.",
            "2 where 10 is expected",
        ),
        Mistake(
            "the padding taken for data",
            partial(_read, stripped=True),
            "The spaces at the end belong to the header: its length counts them.",
            "Add the length as it stands in the file.",
            "too small a number where the header is padded",
        ),
        Mistake(
            "Latin-1 instead of UTF-8",
            partial(_read, code="latin-1"),
            "Every byte was taken for a character, so é became two, and what is no UTF-8 was accepted.",
            'Decode with "utf-8".',
            "`Ã©` where `é` is expected",
        ),
    ),
)

# ---- check_layout ----------------------------------------------------------------------------------------------------


def check_layout(entries: Entries, n_bytes: int) -> list[str]:
    """The reference: the header's entries and the size of the data -> the names in the order of the data."""
    return _layout(entries, n_bytes)


def layout_oracle(entries: Entries, n_bytes: int) -> list[str]:
    """Every byte of the data is given to the tensors that claim it: each must have exactly one owner."""
    owners: list[list[str]] = [[] for _ in range(n_bytes)]
    for name, entry in entries.items():
        begin, end = entry["data_offsets"]
        wanted = ITEM[entry["dtype"]] * int(np.prod(entry["shape"], dtype=int))
        if not 0 <= begin <= end <= n_bytes or end - begin != wanted:
            raise ValueError(name)
        for place in range(begin, end):
            owners[place].append(name)
    if any(len(names) != 1 for names in owners):
        raise ValueError("a hole or an overlap")
    return list(dict.fromkeys(names[0] for names in owners))


def _layout_cases(random: np.random.Generator) -> list[Case]:
    def f32(begin: int, end: int, n: int | None = None) -> dict[str, Any]:
        return {"dtype": "F32", "shape": [(end - begin) // 4 if n is None else n], "data_offsets": [begin, end]}

    order = random.permutation(6)
    sizes = random.integers(1, 9, 6)
    starts = dict(zip(order.tolist(), np.cumsum([0, *sizes[order][:-1]]).tolist()))
    drawn = {f"w{i}": f32(4 * starts[i], 4 * (starts[i] + int(sizes[i]))) for i in range(6)}
    return [
        ({"a": f32(0, 4), "b": f32(4, 12)}, 12),
        ({}, 0),
        ({"last": f32(4, 8), "first": f32(0, 4)}, 8),
        ({"h": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}}, 12),
        (drawn, 4 * int(sizes.sum())),
        ({"a": f32(0, 4), "b": f32(0, 4)}, 4),
        ({"a": f32(0, 8), "b": f32(4, 8)}, 8),
        ({"a": f32(0, 4), "b": f32(8, 12)}, 12),
        ({"a": f32(4, 8)}, 8),
        ({"a": f32(0, 4)}, 12),
        ({"a": f32(0, 8)}, 4),
        ({"a": f32(0, 4, 2)}, 4),
        ({"a": f32(0, 8, 1)}, 8),
        ({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]}, "b": f32(0, 4)}, 4),
    ]


def _layout(
    entries: Entries,
    n_bytes: int,
    *,
    overlaps: bool = False,
    holes: bool = False,
    tail: bool = False,
    sizes: bool = False,
    in_order: bool = False,
    header_order: bool = False,
) -> list[str]:
    names = list(entries) if in_order else sorted(entries, key=lambda name: entries[name]["data_offsets"])
    at = 0
    for name in names:
        begin, end = entries[name]["data_offsets"]
        if (begin < at and not overlaps) or (begin > at and not holes) or end < begin:
            raise ValueError(f"{name} begins at {begin}, and {at} is expected")
        if end - begin != ITEM[entries[name]["dtype"]] * math.prod(entries[name]["shape"]) and not sizes:
            raise ValueError(f"{name}: its shape does not fit its bytes")
        at = max(at, end)
    if at != n_bytes and not tail:
        raise ValueError(f"the tensors end at {at}, the data at {n_bytes}")
    return list(entries) if header_order else names


CHECK_LAYOUT = Exercise(
    name="check_layout",
    lab="03",
    goal="Check that the tensors cover the data exactly, without holes or overlaps, and list them as they lie there.",
    minutes=8,
    difficulty="core",
    reference=check_layout,
    oracle=layout_oracle,
    cases=_layout_cases,
    hints=(
        "Sort the names by where they begin. Then every tensor must begin where the one before it ended, the first at "
        "0, and "
        "the last must end where the data ends.",
        '`sorted(entries, key=lambda name: entries[name]["data_offsets"])`; for each, compare begin with the end of '
        "the last, "
        "and end - begin with `ITEM[dtype] * math.prod(shape)`.",
    ),
    why="a byte that no tensor owns is a place to hide something; a byte that two own is a surprise.",
    mistakes=(
        Mistake(
            "overlaps let through",
            partial(_layout, overlaps=True),
            "A tensor may not begin before the last one has ended.",
            "Demand that begin is equal to the end before.",
            "a list where two tensors share bytes",
        ),
        Mistake(
            "holes let through",
            partial(_layout, holes=True),
            "Between two tensors, or before the first, lie bytes that nobody owns.",
            "Demand that begin is equal to the end before, and 0 for the first.",
            "a list where bytes 4 to 7 belong to nobody",
        ),
        Mistake(
            "bytes behind the last tensor let through",
            partial(_layout, tail=True),
            "The data must end where the last tensor ends: behind it a second file could hide, or the data may be cut "
            "off.",
            "Compare the last end with `n_bytes`.",
            "a list for data of 12 bytes with a tensor of 4",
        ),
        Mistake(
            "shape and size never compared",
            partial(_layout, sizes=True),
            "A tensor of two float32 needs eight bytes, and this one has four.",
            "Compare end - begin with the element's bytes times the product of the shape.",
            "a list where a shape does not fit",
        ),
        Mistake(
            "the header's order demanded",
            partial(_layout, in_order=True),
            "A header may list the tensors in any order; only the data must be complete.",
            "Sort by the offsets first.",
            "a good file refused because its last tensor is listed first",
        ),
        Mistake(
            "listed in the header's order",
            partial(_layout, header_order=True),
            "The names are asked for in the order of the data.",
            "Return the sorted names.",
            "['last', 'first'] where ['first', 'last'] is expected",
        ),
    ),
)
