"""Every byte of a real GGUF file has a name: the counterpart of ``fields.gguf_lite_fields`` for version 3 of GGUF.

A long array is one field, and so is the data of a tensor, whatever its type: its explanation says what a block holds.
As in ``fields``, a malformed file is named as far as its structure carries.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..field import MAGIC_FIELD, Field, _place, _show, _Walk
from ..tensor import TensorInfo
from .codecs import CODECS, codec_of, decode
from .metadata import NUMPY, StringArray, ValueType
from .read import ALIGNMENT, INTEGERS, MAX_DIMS, VERSIONS, padded, read_gguf
from .types import GGMLType

MAGIC = b"GGUF"
SHOWN = 6  # elements of an array in its short text
_NUMBERS = {kind: dtype.str if kind != ValueType.BOOL else "|u1" for kind, dtype in NUMPY.items()}
_SCALARS = {kind: "<?" if kind == ValueType.BOOL else f"<{dtype.char}" for kind, dtype in NUMPY.items()}
_SCALARS |= {ValueType.UINT64: "<Q", ValueType.INT64: "<q", ValueType.UINT32: "<I", ValueType.INT32: "<i"}


@dataclass(frozen=True, repr=False)
class GGUFField(Field):
    """A ``Field`` whose ``form`` may also be ``dims64``, ``value type``, ``tensor type``, ``strings``, a numpy code
    with a ``shape``, or the name of a tensor type: then the value is the decoded tensor, float32."""

    @property
    def value(self) -> Any:
        """A number, a string, a tuple of dims, a type, a list of strings, or an array in its shape."""
        data = bytes(self.raw) if self.form in ("dims64", "value type", "tensor type", "strings") else b""
        if self.form == "dims64":
            return struct.unpack(f"<{len(data) // 8}Q", data[: len(data) // 8 * 8])
        if self.form in ("value type", "tensor type"):
            return _known(data, ValueType if self.form == "value type" else GGMLType)
        if self.form == "strings":
            return [text for _, text in _strings(self.raw)]
        if self.shape is None:
            return super().value
        array = self._elements(0, len(self.raw) // self._item()[0])
        return array.reshape(self.shape) if array.size == math.prod(self.shape) else array

    def text(self, start: int | None = None, end: int | None = None) -> str:
        """The value as short text; of an array, the elements that lie in the file's bytes ``start`` to ``end``."""
        if self.form == "strings":
            return self._strings_text(start, end)
        if self.shape is None:
            value = self.value
            if isinstance(value, GGMLType | ValueType):
                return f"{value.value} ({value.name})"
            return _show(value, self.name)
        size, per = self._item()
        first = (max(self.start, start or 0) - self.start) // size
        last = math.ceil((min(self.end, self.end if end is None else end) - self.start) / size)
        if self.form in GGMLType.__members__ and GGMLType[self.form] not in CODECS and self.form not in _PLAIN:
            return f"{last - first} blocks of type {self.form}"
        shown = SHOWN if start is None else 32
        items = self._elements(first, min(last, first + max(1, shown // per)))[:shown]
        if not len(items):
            return "cut short"
        listed = ", ".join(f"{x:.4g}" if items.dtype.kind == "f" else str(x) for x in items.tolist())
        named = self.parts(start, end) if start is not None and end is not None else ""
        place = _place(first * per, last * per - 1, self.shape)
        return f"{named + '; ' * bool(named)}{place}: {listed}" + ", …" * ((last - first) * per > shown)

    def parts(self, start: int, end: int) -> str:
        """Which parts of a tensor's blocks lie in the file's bytes ``start`` to ``end``; empty without blocks."""
        kind = GGMLType.__members__.get(self.form)
        if kind not in CODECS or kind.block == 1:
            return ""
        first, last = (max(start, self.start) - self.start, min(end, self.end) - self.start)
        found = []
        for block in range(first // kind.n_bytes, (last - 1) // kind.n_bytes + 1):
            at, names = block * kind.n_bytes, []
            for part in CODECS[kind].fields:
                if at < last and at + part.n_bytes > first:
                    names.append(part.name)
                at += part.n_bytes
            found.append(f"{', '.join(names)} of block {block}")
        return ", ".join(found)

    def _item(self) -> tuple[int, int]:
        """The bytes of the smallest piece that can be decoded, and how many elements it holds."""
        if self.form in GGMLType.__members__:
            return GGMLType[self.form].n_bytes, GGMLType[self.form].block
        return np.dtype(self.form).itemsize, 1

    def _elements(self, first: int, last: int) -> np.ndarray:
        """Decode the pieces ``first`` to ``last`` (exclusive), as many of them as are there."""
        size = self._item()[0]
        whole = np.ascontiguousarray(self.raw[first * size : min(last, len(self.raw) // size) * size])
        if self.form not in GGMLType.__members__ or self.form in _PLAIN:
            return whole.view(_PLAIN.get(self.form, self.form))
        kind = GGMLType[self.form]
        return decode(whole, kind) if kind in CODECS else whole

    def _strings_text(self, start: int | None, end: int | None) -> str:
        begin, stop = (start or self.start) - self.start, (end or self.end) - self.start
        inside = []
        for index, (after, text) in enumerate(_strings(self.raw)):
            if after > begin:
                inside.append(f"[{index}] {text if len(text) <= 40 else text[:39] + '…'!r}")
            if after >= stop or len(inside) > SHOWN:
                break
        return ", ".join(inside[:SHOWN]) + ", …" * (len(inside) > SHOWN)


_PLAIN = {kind.name: code for kind, code in INTEGERS.items()}


def block_fields(raw: np.ndarray, dtype: GGMLType) -> list[Field]:
    """The parts of one block as fields, counted from its first byte.

    raw: (bytes of a block,) uint8. Raises ``QuantizationError`` for a type without a codec.

    >>> [(f.name, f.start, f.end) for f in block_fields(np.zeros(144, np.uint8), GGMLType.Q4_K)]
    [('d', 0, 2), ('dmin', 2, 4), ('scales', 4, 16), ('qs', 16, 144)]
    """
    codec, found, at = codec_of(dtype), [], 0
    for field, part in zip(codec.fields, codec.split(raw).values()):
        text = codec.text_of(field, part)
        found.append(Field(field.name, at, at + len(part), field.category, text, part, field.form))
        at += len(part)
    return found


def _known(data: bytes, types: Any) -> Any:
    if len(data) != 4:
        return data  # cut short
    (number,) = struct.unpack("<I", data)
    return types(number) if number in types._value2member_map_ else number


def _strings(raw: np.ndarray) -> Iterator[tuple[int, str]]:
    """The strings of an array, each with the position after its last byte; stops where the bytes end."""
    data, at = memoryview(np.ascontiguousarray(raw)), 0
    while at + 8 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        after = at + 8 + length
        if after > len(data):
            return
        yield after, str(data[at + 8 : after], "utf-8", "replace")
        at = after


class _GGUFWalk(_Walk):
    """A position in the bytes, as in ``fields``; strings and peeking besides."""

    def take(
        self, name: str, size: int, kind: str, form: str, explanation: str, shape: tuple[int, ...] | None = None
    ) -> Field:
        """The next ``size`` bytes as a field; ``EOFError`` if the file ends first."""
        f = super().take(name, size, kind, form, explanation)
        return GGUFField(f.name, f.start, f.end, f.kind, f.explanation, f.raw, form, shape)

    def peek(self, size: int) -> str:
        """The text ahead, without a step; ``EOFError`` if the file ends first."""
        if self.at + size > len(self.data):
            raise EOFError
        return bytes(self.data[self.at : self.at + size]).decode("utf-8", "replace")[:60]


def gguf_fields(data: np.ndarray) -> Iterator[Field]:
    """The fields of a GGUF file, as far as its structure carries; zero-length fields are left out."""
    walk, infos, alignment = _GGUFWalk(data), [], ALIGNMENT
    try:
        yield walk.take(MAGIC_FIELD, 4, "header", "<I", "the letters GGUF; read as a little-endian number, this one")
        yield (version := walk.take("header.version", 4, "header", "<I", "the version of the format"))
        if version.value not in VERSIONS:
            return
        yield (n_tensors := walk.take("header.n_tensors", 8, "header", "<Q", "how many tensor infos follow the keys"))
        yield (n_pairs := walk.take("header.n_kv", 8, "header", "<Q", "how many key-value pairs follow"))
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


def _pair(walk: _GGUFWalk, index: int) -> Iterator[Field]:
    length = walk.take(f"key {index}: length", 8, "metadata", "<Q", "how many bytes the key takes")
    yield length
    key = f"metadata {walk.peek(length.value)!r}"
    if length.value:
        yield walk.take(f"{key}: key", length.value, "metadata", "text", "what the value is called")
    yield (kind := walk.take(f"{key}: type", 4, "metadata", "value type", "the type of the value"))
    if kind.value == ValueType.ARRAY:
        yield from _array(walk, key)
    elif kind.value == ValueType.STRING:
        yield (size := walk.take(f"{key}: length", 8, "metadata", "<Q", "how many bytes the text takes"))
        if size.value:
            yield walk.take(f"{key}: value", size.value, "metadata", "text", "text, UTF-8")
    elif isinstance(kind.value, ValueType):
        code = _SCALARS[kind.value]
        yield walk.take(f"{key}: value", struct.calcsize(code), "metadata", code, f"one {kind.value.name}")
    else:
        raise EOFError


def _array(walk: _GGUFWalk, key: str) -> Iterator[Field]:
    yield (of := walk.take(f"{key}: element type", 4, "metadata", "value type", "the type of every element"))
    yield (count := walk.take(f"{key}: items", 8, "metadata", "<Q", "how many elements follow"))
    n = count.value
    if of.value == ValueType.STRING:
        size, form, shape, what = _length_of_strings(walk, n), "strings", None, f"{n} strings, each behind its length"
    elif of.value in _NUMBERS:
        form, shape, what = _NUMBERS[of.value], (n,), f"{n} numbers of type {of.value.name}"
        size = n * np.dtype(form).itemsize
    else:
        raise EOFError
    if size:
        yield walk.take(f"{key}: elements", size, "metadata", form, what, shape)


def _length_of_strings(walk: _GGUFWalk, count: int) -> int:
    at, end = walk.at, len(walk.data)
    for _ in range(count):
        if at + 8 > end:
            raise EOFError
        at += 8 + int.from_bytes(walk.data[at : at + 8].tobytes(), "little")
    if at > end:
        raise EOFError
    return at - walk.at


def _info(walk: _GGUFWalk, index: int, infos: list[TensorInfo[GGMLType]]) -> Iterator[Field]:
    length = walk.take(f"tensor {index}: name: length", 8, "name", "<Q", "how many bytes the name takes")
    yield length
    name = walk.peek(length.value)
    tensor = f"tensor {name!r}"
    if length.value:
        yield walk.take(f"{tensor}: name", length.value, "name", "text", "the tensor's name, UTF-8")
    yield (n_dims := walk.take(f"{tensor}: n_dims", 4, "shape", "<I", "how many dims follow"))
    if n_dims.value > MAX_DIMS:
        raise EOFError
    dims: tuple[int, ...] = ()
    if n_dims.value:
        what = "the shape, the row's width first: the reverse of PyTorch's order"
        yield (field := walk.take(f"{tensor}: dims", 8 * n_dims.value, "shape", "dims64", what))
        dims = field.value
    yield (kind := walk.take(f"{tensor}: type", 4, "dtype", "tensor type", "how the values are stored"))
    what = "where its data begins, counted from the start of the data"
    yield (offset := walk.take(f"{tensor}: offset", 8, "offset", "<Q", what))
    if not isinstance(kind.value, GGMLType):
        raise EOFError
    infos.append(TensorInfo(name, dims[::-1], kind.value, offset.value))


def _data(data: np.ndarray, head: int, infos: list[TensorInfo[GGMLType]], alignment: int) -> Iterator[Field]:
    """The padding and the tensors; what overlaps is left out, what the file's end cuts is shortened."""
    zeros = f"zeros up to the next multiple of {alignment}"
    start = padded(head, alignment)
    yield from _padding("padding before the data", data, head, start, zeros)
    end = start
    for info in sorted(infos, key=lambda info: info.offset):
        at = start + info.offset
        if at < end or at >= len(data) or _impossible(info) or not info.n_bytes:
            continue
        stop = min(at + info.n_bytes, len(data))
        cut = f"; cut short: {stop - at} of {info.n_bytes} bytes" if stop - at < info.n_bytes else ""
        what = info.dtype.description + cut
        yield GGUFField(
            f"tensor {info.name!r}: data", at, stop, "values", what, data[at:stop], info.dtype.name, info.shape
        )
        end = padded(stop, alignment)
        yield from _padding(f"padding after {info.name!r}", data, stop, end, zeros)


def _padding(name: str, data: np.ndarray, start: int, end: int, what: str) -> Iterator[Field]:
    end = min(end, len(data))
    if end > start:
        yield GGUFField(name, start, end, "padding", what, data[start:end])


def _impossible(info: TensorInfo[GGMLType]) -> bool:
    """Whether no tensor has such a shape: dims beyond any file, or rows that are no whole number of blocks."""
    width = info.shape[-1] if info.shape else 1
    return width % info.dtype.block != 0 or math.prod(d for d in info.shape if d) >= 2**60


def check_gguf(path: str | os.PathLike[str]) -> None:
    """Raise what the reader raises on opening the file, or on reading a text in an array."""
    with read_gguf(path) as file:
        for value in file.metadata.values():
            if isinstance(value, StringArray):
                list(value)
