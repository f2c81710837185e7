"""Every byte of a safetensors file has a name: the length, the header's entries part by part, the tensors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.arrays import bfloat16_to_float32
from ...core.reading import Source
from ...core.slices import Bytes
from ..field import Array, Decoder, Field, Number, Text, numbers, show
from ..json_places import Member, byte_members
from ..walk import cut_short
from .read import METADATA, open_safetensors
from .types import MAX_HEADER, SafetensorsType

PARTS = {  # of an entry: category, what it is
    "dtype": ("dtype", "how the values are stored"),
    "shape": ("shape", "the shape, as PyTorch has it"),
    "data_offsets": ("offset", "where its data begins and ends, counted from the start of the data"),
}


class Json(Decoder):
    """The value of a member of an object, with what stands around it: ``start`` is where the value begins."""

    def __init__(self, start: int) -> None:
        self.start = start

    def value(self, raw: Bytes) -> Any:
        """What JSON reads there; the text, where that is none."""
        text = bytes(raw[self.start :]).decode("utf-8", "replace")
        try:
            return json.JSONDecoder().raw_decode(text)[0]
        except (ValueError, RecursionError):
            return text

    def text(self, raw: Bytes, start: int | None = None, end: int | None = None) -> str:
        """The value as short text."""
        value = self.value(raw)
        return show(value if isinstance(value, str) else json.dumps(value))


def safetensors_fields(data: Bytes) -> Iterator[Field]:
    """The fields of a safetensors file, as far as its structure carries.

    A comma or brace belongs to the part that it comes before.
    """
    if data.size < 8:
        return
    what = "how many bytes the header takes"
    yield (length := Field("header.length", 0, 8, "header", what, data[0:8], Number("<Q")))
    if length.value > min(data.size - 8, MAX_HEADER):
        return
    start = 8 + length.value
    text, at, places = bytes(data[8:start]), 8, {}
    try:
        for member in byte_members(text):
            for field in _member(data, text, member, at):
                yield field
                at = field.end
            if member.key != METADATA:
                places[member.key] = json.loads(text[member.start : member.end])
    except (ValueError, IndexError, RecursionError):
        return
    yield Field("header: end", at, start, "header", "the closing brace, and spaces", data[at:start], Text())
    yield from _tensors(data, start, places)


def _member(data: Bytes, text: bytes, member: Member, at: int) -> Iterator[Field]:
    """A tensor's entry, or the metadata, part by part: from byte ``at`` of the file to the end of the member."""
    inner = list(byte_members(text, member.start)) if text[member.start : member.start + 1] == b"{" else []
    end = 8 + member.end
    if member.key == METADATA:
        rest = ((f"metadata {part.key[:60]!r}", "metadata", "a word of its own", part) for part in inner)
        first, what = "metadata", "free text about the file"
    else:
        first, what = f"tensor {member.key[:60]!r}: name", "the tensor's name, in quotes"
        known = [part for part in inner if part.key in PARTS]
        rest = ((f"tensor {member.key[:60]!r}: {part.key}", *PARTS[part.key], part) for part in known)
    name_end = 8 + member.start + (1 if inner else 0)
    yield Field(first, at, name_end, "metadata" if member.key == METADATA else "name", what, data[at:name_end], Text())
    at = name_end
    for name, category, explained, part in rest:
        stop = end if part == inner[-1] else 8 + part.end
        yield Field(name, at, stop, category, explained, data[at:stop], Json(8 + part.start - at))
        at = stop
    if at < end:
        yield Field(f"{first.removesuffix(': name')}: entry", at, end, "metadata", "the entry", data[at:end], Text())


def _tensors(data: Bytes, start: int, entries: dict[str, Any]) -> Iterator[Field]:
    """The data of each tensor; what overlaps is left out, what the file's end cuts is shortened."""
    found = []
    for name, entry in entries.items():
        try:
            begin, end = entry["data_offsets"]
            found.append((int(begin), int(end), name, tuple(entry["shape"]), SafetensorsType[entry["dtype"]]))
        except (TypeError, KeyError, ValueError):
            continue
    at = start
    for begin, end, name, shape, dtype in sorted(found, key=lambda item: item[:3]):
        first, last = start + begin, min(start + end, data.size)
        if first < at or first >= last or any(type(dim) is not int or dim < 0 for dim in shape):
            continue
        what = dtype.description + cut_short(last - first, end - begin)
        decoder = numbers(dtype.numpy.str, shape, dtype.name)
        if dtype == SafetensorsType.BF16:
            decoder = Array(shape, 2, 1, "BF16", _bfloat16)
        yield Field(f"tensor {name[:60]!r}: data", first, last, "values", what, data[first:last], decoder)
        at = last


def _bfloat16(raw: np.ndarray) -> np.ndarray:
    return bfloat16_to_float32(raw.view("<u2"))


def check_safetensors(source: Source) -> None:
    """Raise what the reader raises on opening the file."""
    open_safetensors(source).close()
