"""The exercises of lab 03 on writing safetensors: where each tensor lies, and the header's bytes."""

from __future__ import annotations

import json
import math
import struct
from functools import partial
from typing import Any

import numpy as np

from ...lab.compare import Fields
from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import by_digits

ITEM = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}  # bytes of an element
Described = dict[str, tuple[str, tuple[int, ...]]]
Entries = dict[str, dict[str, Any]]

# ---- tensor_entries --------------------------------------------------------------------------------------------------


def tensor_entries(tensors: Described) -> Entries:
    """The reference: {name: (dtype, shape)} -> the header's entries, in order, back to back."""
    entries, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        end = at + ITEM[dtype] * math.prod(shape)
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    return entries


def entries_oracle(tensors: Described) -> Entries:
    """The sizes first, from numpy; the offsets as their running sum."""
    sizes = [np.zeros(shape, f"V{ITEM[dtype]}").nbytes for dtype, shape in tensors.values()]
    ends = np.cumsum([0, *sizes]).tolist()
    keys = ("dtype", "shape", "data_offsets")
    return {
        name: dict(zip(keys, (dtype, [*shape], ends[i : i + 2])))
        for i, (name, (dtype, shape)) in enumerate(tensors.items())
    }


def _entries_cases(random: np.random.Generator) -> list[Case]:
    made: list[Described] = [
        {"a": ("F32", (2, 3))},
        {"a": ("F32", (1,)), "b": ("F32", (2,))},
        {"half": ("F16", (3,)), "weights": ("F32", (2, 2))},
        {"z": ("U8", (5,)), "a": ("I64", (2,)), "bits": ("BOOL", (3,))},
        {"step": ("F32", ()), "none": ("F32", (0, 4)), "w": ("BF16", (4, 4))},
        {},
    ]
    for _ in range(3):
        kinds = [("F32", "F16", "I64", "U8")[int(k)] for k in random.integers(0, 4, 4)]
        made.append(
            {
                f"w{i}": (k, tuple(random.integers(1, 6, int(random.integers(1, 4))).tolist()))
                for i, k in enumerate(kinds)
            }
        )
    return [(one,) for one in made]


def _entries(
    tensors: Described,
    *,
    start: int = 0,
    item: int = 0,
    length: bool = False,
    inclusive: bool = False,
    alone: bool = False,
    align: int = 1,
    as_tuple: bool = False,
    by_name: bool = False,
) -> Entries:
    out, at = {}, start
    for name, (dtype, shape) in sorted(tensors.items()) if by_name else tensors.items():
        size = (item or ITEM[dtype]) * math.prod(shape)
        at = 0 if alone else -(-at // align) * align
        second = size if length else at + size - inclusive
        out[name] = {"dtype": dtype, "shape": tuple(shape) if as_tuple else list(shape), "data_offsets": [at, second]}
        at += size
    return out


TENSOR_ENTRIES = Exercise(
    name="tensor_entries",
    lab="03",
    goal="Plan a safetensors file: for every tensor its dtype, its shape, and where its bytes begin and end.",
    minutes=6,
    difficulty="core",
    reference=tensor_entries,
    oracle=entries_oracle,
    cases=_entries_cases,
    hints=(
        "Keep a position that starts at 0. A tensor takes the bytes of an element times the product of its shape, and "
        "the "
        "next one begins where it ends.",
        "`end = at + ITEM[dtype] * math.prod(shape)`, then `[at, end]`, then `at = end`. `math.prod(())` is 1, so a "
        "single "
        "number needs no case of its own.",
    ),
    why="offsets that count from the start of the data can be written before anyone knows how long the header is.",
    mistakes=(
        Mistake(
            "absolute offsets",
            partial(_entries, start=8),
            "The first tensor begins behind the eight bytes of the length; offsets count from where the data begins.",
            "Start at 0.",
            "[8, 32] where [0, 24] is expected",
        ),
        Mistake(
            "a length in place of the end",
            partial(_entries, length=True),
            "The second number is the length of the tensor, and it should be where the tensor ends.",
            "Write [begin, end].",
            "the first tensor right, and all others with too small a second number",
        ),
        Mistake(
            "the last byte in place of the end",
            partial(_entries, inclusive=True),
            "The second number is the place of the last byte; the end is one further, as in Python's slices.",
            "Leave out the - 1.",
            "23 where 24 is expected",
        ),
        Mistake(
            "elements counted",
            partial(_entries, item=1),
            "These are numbers of elements, and offsets count bytes.",
            "Multiply by `ITEM[dtype]`.",
            "6 where 24 is expected",
        ),
        Mistake(
            "four bytes for every dtype",
            partial(_entries, item=4),
            "Every element was given four bytes.",
            "Take the size from `ITEM`.",
            "F32 right, all other dtypes wrong",
        ),
        Mistake(
            "every tensor at 0",
            partial(_entries, alone=True),
            "The position does not move on, so all tensors lie on top of each other.",
            "Set `at = end` after each.",
            "every first offset 0",
        ),
        Mistake(
            "aligned to eight bytes",
            partial(_entries, align=8),
            "A gap was left so that the next tensor begins at a multiple of eight; safetensors allows no gaps.",
            "Begin each tensor where the last one ended.",
            "the second tensor at 8 where 4 is expected",
        ),
        Mistake(
            "the shape as a tuple",
            partial(_entries, as_tuple=True),
            "JSON has lists and no tuples; what you write and what you read back would differ.",
            "Write `list(shape)`.",
            "(2, 3) where [2, 3] is expected",
        ),
        Mistake(
            "sorted by name",
            partial(_entries, by_name=True),
            "The tensors were planned in the order of their names, and they are written in the order of the dict.",
            "Go through `tensors.items()` as it is.",
            "another order of keys",
        ),
    ),
)

# ---- safetensors_head ------------------------------------------------------------------------------------------------


def safetensors_head(text: str) -> bytes:
    """The reference: JSON as text -> u64 length, UTF-8, spaces up to a multiple of eight."""
    data = text.encode("utf-8")
    data += b" " * (-len(data) % 8)
    return struct.pack("<Q", len(data)) + data


def header_oracle(text: str) -> bytes:
    """Character by character, space by space."""
    data = b"".join(bytes(character, "utf-8") for character in text)
    while len(data) % 8:
        data = data + b" "
    return by_digits(len(data), 8) + data


def header_fields(text: str) -> Fields:
    """The length, the text, the padding."""
    end = 8 + len(text.encode())
    return [("the length", 0, 8), ("the JSON", 8, end), ("the padding", end, end + 8)]


def _header_cases(random: np.random.Generator) -> list[Case]:
    drawn = [json.dumps({"".join(map(chr, random.integers(97, 123, n))): n}) for n in (3, 9, 70, 300)]
    return [(text,) for text in ('{"a":1}', '{"ab":1}', "{}", '{"é":"ü","ö":"ß"}', '{"日本":1}', *drawn)]


def _header(
    text: str,
    *,
    form: str = "<Q",
    characters: bool = False,
    counted: bool = True,
    padded: bool = True,
    always: bool = False,
    filler: bytes = b" ",
    whole: bool = False,
) -> bytes:
    data = text.encode()
    length = len(text) if characters else len(data)
    fill = (8 - len(data) % 8 if always else -len(data) % 8) if padded else 0
    size = length + (fill if counted else 0) + (struct.calcsize(form) if whole else 0)
    return struct.pack(form, size) + data + filler * fill


SAFETENSORS_HEAD = Exercise(
    name="safetensors_head",
    lab="03",
    goal="Turn the header's JSON into bytes: its length as a u64, then UTF-8, padded with spaces to a multiple of "
    "eight.",
    minutes=5,
    difficulty="warm-up",
    reference=safetensors_head,
    oracle=header_oracle,
    cases=_header_cases,
    fields=header_fields,
    hints=(
        "Encode first, pad second, count last: the length is that of the bytes, padding included.",
        '`data += b" " * (-len(data) % 8)`, then `struct.pack("<Q", len(data)) + data`.',
    ),
    why="JSON allows spaces at its end, so the padding needs no rule of its own.",
    mistakes=(
        Mistake(
            "the length counts characters",
            partial(_header, characters=True),
            "The length counts characters, and é takes two bytes in UTF-8.",
            "Encode first, and take `len` of the bytes.",
            "plain letters right, and `é` one too short",
        ),
        Mistake(
            "the padding not counted",
            partial(_header, counted=False),
            "The length stops at the end of the JSON, so a reader takes the spaces for data, and every tensor is "
            "shifted.",
            "Pad before you count.",
            "7 where 8 is expected",
        ),
        Mistake(
            "no padding",
            partial(_header, padded=False),
            "The specification makes padding optional, and it is asked for here: behind it the data is aligned.",
            'Add `b" " * (-len(data) % 8)`.',
            "too few bytes for most headers",
        ),
        Mistake(
            "eight spaces too many",
            partial(_header, always=True),
            "`8 - len(data) % 8` is 8, not 0, where the header is a multiple of eight already.",
            "Use `-len(data) % 8`, which goes from 0 to 7.",
            "most headers right, and 16 where 8 is expected",
        ),
        Mistake(
            "padded with zeros",
            partial(_header, filler=b"\0"),
            "Zero bytes are no white space in JSON, and the parser stops at the first.",
            "Pad with spaces, 0x20.",
            "`00` where `20` is expected",
        ),
        Mistake(
            "32-bit length",
            partial(_header, form="<I"),
            "The length takes four bytes, and here eight.",
            "Pack it as `Q`.",
            "the JSON begins at byte 4",
        ),
        Mistake(
            "big-endian",
            partial(_header, form=">Q"),
            "The most significant byte came first: a reader sees a header of many terabytes.",
            "Begin the format with `<`.",
            "the length in byte 7 instead of byte 0",
        ),
        Mistake(
            "the length counts itself",
            partial(_header, whole=True),
            "The eight bytes of the length were counted, too.",
            "Count the header alone.",
            "16 where 8 is expected",
        ),
    ),
)
