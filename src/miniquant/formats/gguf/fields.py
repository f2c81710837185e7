"""Every byte of a real GGUF file has a name: version 3.

A long array is one field, and so is the data of a tensor, whatever its type: its explanation says what a block holds.
A malformed file is named as far as its structure carries.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

import numpy as np

from ...core.reading import Source
from ...core.slices import Bytes
from ..field import Array, Decoder, Dims, Field, Member, Number, Strings, Text, numbers
from ..strings import walk_strings
from ..tensor import TensorInfo
from ..walk import MAGIC_FIELD, Walk, cut_short, padding
from .codecs import CODECS, codec_of, decode
from .metadata import NUMPY, StringArray, ValueType
from .read import ALIGNMENT, INTEGERS, MAX_DIMS, VERSIONS, padded, read_gguf
from .types import GGMLType

U32, U64, VALUE_TYPE, TENSOR_TYPE = Number("<I"), Number("<Q"), Member(ValueType, "<I"), Member(GGMLType, "<I")
_NUMBERS = {kind: dtype.str if kind != ValueType.BOOL else "|u1" for kind, dtype in NUMPY.items()}
_SCALARS = {kind: "<?" if kind == ValueType.BOOL else f"<{dtype.char}" for kind, dtype in NUMPY.items()}
_SCALARS |= {ValueType.UINT64: "<Q", ValueType.INT64: "<q", ValueType.UINT32: "<I", ValueType.INT32: "<i"}


def tensor_values(dtype: GGMLType, shape: tuple[int, ...]) -> Array:
    """The decoder of a tensor's data."""
    if dtype in INTEGERS:
        return numbers(INTEGERS[dtype], shape, dtype.name)
    if dtype not in CODECS:
        return Array(shape, dtype.n_bytes, dtype.block, dtype.name, None)
    codec = CODECS[dtype]
    parts = {part.name: part.n_bytes for part in codec.fields} if dtype.block > 1 else None
    return Array(shape, dtype.n_bytes, dtype.block, dtype.name, lambda raw: decode(raw, dtype), parts)


def block_fields(raw: np.ndarray, dtype: GGMLType) -> list[Field]:
    """The parts of one block as fields, counted from its first byte.

    raw: (bytes of a block,) uint8. Raises ``QuantizationError`` for a type without a codec.

    >>> [(f.name, f.start, f.end) for f in block_fields(np.zeros(144, np.uint8), GGMLType.Q4_K)]
    [('d', 0, 2), ('dmin', 2, 4), ('scales', 4, 16), ('qs', 16, 144)]
    """
    codec, found, at = codec_of(dtype), [], 0
    for field, part in zip(codec.fields, codec.split(raw).values()):
        decoder = Number(field.code) if field.code else Decoder()
        found.append(Field(field.name, at, at + len(part), field.category, codec.text_of(field, part), part, decoder))
        at += len(part)
    return found


def gguf_fields(data: Bytes) -> Iterator[Field]:
    """The fields of a GGUF file, as far as its structure carries; zero-length fields are left out."""
    walk, alignment = Walk(data), ALIGNMENT
    infos: list[TensorInfo[GGMLType]] = []
    try:
        yield walk.take(
            MAGIC_FIELD,
            4,
            "header",
            Number("<I", as_hex=True),
            "the letters GGUF; read as a little-endian number, this one",
        )
        yield (version := walk.take("header.version", 4, "header", U32, "the version of the format"))
        if version.value not in VERSIONS:
            return
        yield (n_tensors := walk.take("header.n_tensors", 8, "header", U64, "how many tensor infos follow the keys"))
        yield (n_pairs := walk.take("header.n_kv", 8, "header", U64, "how many key-value pairs follow"))
        for index in range(n_pairs.value):
            for field in _pair(walk, index):
                yield field
                if field.name == "metadata 'general.alignment': value" and isinstance(field.value, int):
                    alignment = field.value
        if alignment <= 0 or alignment & (alignment - 1):
            return
        for index in range(n_tensors.value):
            yield from _info(walk, index, infos)
            if infos[-1].offset % alignment:
                return
    except EOFError:
        return
    yield from _data(data, walk.at, infos, alignment)


def _pair(walk: Walk, index: int) -> Iterator[Field]:
    length = walk.take(f"key {index}: length", 8, "metadata", U64, "how many bytes the key takes")
    yield length
    key = f"metadata {walk.peek(length.value)!r}"
    if length.value:
        yield walk.take(f"{key}: key", length.value, "metadata", Text(), "what the value is called")
    yield (kind := walk.take(f"{key}: type", 4, "metadata", VALUE_TYPE, "the type of the value"))
    if kind.value == ValueType.ARRAY:
        yield from _array(walk, key)
    elif kind.value == ValueType.STRING:
        yield (size := walk.take(f"{key}: length", 8, "metadata", U64, "how many bytes the text takes"))
        if size.value:
            yield walk.take(f"{key}: value", size.value, "metadata", Text(), "text, UTF-8")
    elif isinstance(kind.value, ValueType):
        code = _SCALARS[kind.value]
        yield walk.take(f"{key}: value", struct.calcsize(code), "metadata", Number(code), f"one {kind.value.name}")
    else:
        raise EOFError


def _array(walk: Walk, key: str) -> Iterator[Field]:
    yield (of := walk.take(f"{key}: element type", 4, "metadata", VALUE_TYPE, "the type of every element"))
    yield (count := walk.take(f"{key}: items", 8, "metadata", U64, "how many elements follow"))
    n = count.value
    decoder: Decoder
    if of.value == ValueType.STRING:
        starts, end = walk_strings(walk.data, walk.at, n, walk.data.size)
        if len(starts) < n:
            raise EOFError
        size, decoder, what = end - walk.at, Strings(), f"{n} strings, each behind its length"
    elif of.value in _NUMBERS:
        array = numbers(_NUMBERS[of.value], (n,))
        size, decoder, what = n * array.size, array, f"{n} numbers of type {of.value.name}"
    else:
        raise EOFError
    if size:
        yield walk.take(f"{key}: elements", size, "metadata", decoder, what)


def _info(walk: Walk, index: int, infos: list[TensorInfo[GGMLType]]) -> Iterator[Field]:
    length = walk.take(f"tensor {index}: name: length", 8, "name", U64, "how many bytes the name takes")
    yield length
    name = walk.peek(length.value)
    tensor = f"tensor {name!r}"
    if length.value:
        yield walk.take(f"{tensor}: name", length.value, "name", Text(), "the tensor's name, UTF-8")
    yield (n_dims := walk.take(f"{tensor}: n_dims", 4, "shape", U32, "how many dims follow"))
    if n_dims.value > MAX_DIMS:
        raise EOFError
    dims: tuple[int, ...] = ()
    if n_dims.value:
        what = "the shape, the row's width first: the reverse of PyTorch's order"
        yield (field := walk.take(f"{tensor}: dims", 8 * n_dims.value, "shape", Dims(8), what))
        dims = field.value
    yield (kind := walk.take(f"{tensor}: type", 4, "dtype", TENSOR_TYPE, "how the values are stored"))
    what = "where its data begins, counted from the start of the data"
    yield (offset := walk.take(f"{tensor}: offset", 8, "offset", U64, what))
    if not isinstance(kind.value, GGMLType):
        raise EOFError
    infos.append(TensorInfo(name, dims[::-1], kind.value, offset.value))


def _data(data: Bytes, head: int, infos: list[TensorInfo[GGMLType]], alignment: int) -> Iterator[Field]:
    """The padding and the tensors; what overlaps is left out, what the file's end cuts is shortened."""
    zeros = f"zeros up to the next multiple of {alignment}"
    start = padded(head, alignment)
    yield from padding("padding before the data", data, head, start, zeros)
    end = start
    for info in sorted(infos, key=lambda info: info.offset):
        at = start + info.offset
        if at < end or at >= data.size or _impossible(info) or not info.n_bytes:
            continue
        stop = min(at + info.n_bytes, data.size)
        what = info.dtype.description + cut_short(stop - at, info.n_bytes)
        decoder = tensor_values(info.dtype, info.shape)
        yield Field(f"tensor {info.name!r}: data", at, stop, "values", what, data[at:stop], decoder)
        end = padded(stop, alignment)
        yield from padding(f"padding after {info.name!r}", data, stop, end, zeros)


def _impossible(info: TensorInfo[GGMLType]) -> bool:
    """Whether no tensor has such a shape: dims beyond any file, or rows that are no whole number of blocks."""
    width = info.shape[-1] if info.shape else 1
    return width % info.dtype.block != 0 or math.prod(d for d in info.shape if d) >= 2**60


def check_gguf(source: Source) -> None:
    """Raise what the reader raises on opening the file, or on reading a text in an array."""
    with read_gguf(source) as file:
        for value in file.metadata.values():
            if isinstance(value, StringArray):
                list(value)
