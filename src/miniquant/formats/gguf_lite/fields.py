"""Every byte of a GGUF-lite file has a name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...core.reading import Source
from ...core.slices import Bytes
from ...quantization.packing import unpack_nibbles
from ...quantization.schemes import GROUP_SIZE
from ..field import Array, Decoder, Dims, Field, Line, Member, Number, Text, numbers
from ..walk import MAGIC_FIELD, Walk, cut_short
from .read import open_gguf_lite
from .types import HEADER, MAGIC, MAX_DIMS, VERSION, DType

U16, U32, U64 = Number("<H"), Number("<I"), Number("<Q")


class _Entry(NamedTuple):
    """What a descriptor says; ``dtype`` is a number where no type has that code."""

    field: str
    shape: tuple[int, ...]
    dtype: Any
    offset: int


def gguf_lite_fields(data: Bytes) -> Iterator[Field]:
    """The fields of a GGUF-lite file, as far as its structure carries; zero-length fields are left out.

    data: the whole file
    """
    walk = Walk(data)
    entries: list[_Entry] = []
    try:
        what = "says which format this is; stored low byte first"
        yield (magic := walk.take(MAGIC_FIELD, 4, "header", Number("<I", as_hex=True), what))
        if magic.value != MAGIC:
            return
        yield (version := walk.take("header.version", 4, "header", U32, "the version of the format"))
        if version.value != VERSION:
            return
        yield (count := walk.take("header.n_tensors", 4, "header", U32, "how many descriptors follow the metadata"))
        yield (size := walk.take("header.metadata_len", 4, "header", U32, "how many bytes of metadata follow"))
        yield from _metadata(walk, size.value)
        for index in range(count.value):
            yield from _descriptor(walk, index, entries)
    except EOFError:
        return
    yield from _tensors(data, walk.at, entries)


def _metadata(walk: Walk, size: int) -> Iterator[Field]:
    walk.need(size)
    for line in re.findall(rb"[^\n]*\n|[^\n]+", bytes(walk.data[walk.at : HEADER.size + size])):
        key = line.partition(b"=")[0].decode("utf-8", "replace").strip("\n")[:60]
        yield walk.take(f"metadata {key!r}", len(line), "metadata", Line(), "one line of text, key=value")


def _descriptor(walk: Walk, index: int, entries: list[_Entry]) -> Iterator[Field]:
    length = walk.take(f"descriptor {index}: name_len", 2, "name", U16, "how many bytes the name takes")
    yield length
    name = walk.peek(length.value)
    tensor = f"tensor {name!r}"
    if name:
        yield walk.take(f"{tensor}: name", length.value, "name", Text(), "the parameter's name, UTF-8")
    yield (n_dims := walk.take(f"{tensor}: n_dims", 1, "shape", Number("<B"), "how many dims follow"))
    if n_dims.value > MAX_DIMS:
        raise EOFError
    what = "the shape, out first, as PyTorch has it"
    dims = walk.take(f"{tensor}: dims", 4 * n_dims.value, "shape", Dims(4), what)
    if len(dims):
        yield dims
    yield (dtype := walk.take(f"{tensor}: dtype", 1, "dtype", Member(DType, "<B"), "how the values are stored"))
    yield (offset := walk.take(f"{tensor}: offset", 8, "offset", U64, "where its data begins in the data section"))
    entries.append(_Entry(tensor, dims.value, dtype.value, offset.value))


def _tensors(data: Bytes, start: int, entries: list[_Entry]) -> Iterator[Field]:
    """Scales and values of each tensor, by offset; what overlaps is left out, what the file's end cuts is shortened."""
    end = start
    for tensor, shape, dtype, offset in sorted(entries, key=lambda entry: entry.offset):
        fits = isinstance(dtype, DType) and (dtype.scheme in ("f32", "f16") or len(shape) == 2)
        if not fits or start + offset < end or start + offset >= data.size:
            continue
        scales, size = dtype.scale_bytes(shape), dtype.bytes_of(shape)
        each = f"group of {GROUP_SIZE} in a row" if dtype == DType.Q4_PER_GROUP_64 else "row"
        scale_decoder = numbers("<f2", dtype.scale_shape(shape) or (), "scales")
        parts = [
            ("scales", scales, scale_decoder, f"a float16 scale for each {each}"),
            ("values", size - scales, _values(dtype, shape), _EXPLAINED[dtype]),
        ]
        at = start + offset
        for category, length, decoder, what in parts:
            stop = min(at + length, data.size)
            if stop > at:
                what += cut_short(stop - at, length)
                yield Field(f"{tensor}: {category}", at, stop, category, what, data[at:stop], decoder)
            at = end = stop


def _values(dtype: DType, shape: tuple[int, ...]) -> Decoder:
    if dtype == DType.Q4_PER_GROUP_64:
        return Array(shape, 1, 2, "Q4", unpack_nibbles, shown=(12, 64))
    code = {DType.F32: "<f4", DType.F16: "<f2", DType.Q8_PER_CHANNEL: "i1"}[dtype]
    return numbers(code, shape, "Q8" if dtype == DType.Q8_PER_CHANNEL else dtype.name)


_EXPLAINED = {
    DType.F32: "the weights, float32",
    DType.F16: "the weights, float16",
    DType.Q8_PER_CHANNEL: "8-bit integers; times its row's scale, each is a weight",
    DType.Q4_PER_GROUP_64: "4-bit integers, two a byte, low nibble first; times its group's scale, each is a weight",
}


def check_gguf_lite(source: Source) -> None:
    """Raise what the reader raises on opening the file, or on reading a scale that is not finite."""
    with open_gguf_lite(source) as file:
        for name, info in file.tensors.items():
            scales = file.raw(name)[: info.dtype.scale_bytes(info.shape)].view("<f2")
            if not np.isfinite(scales).all():
                file.quantized(name)
