"""The typed key-values of GGUF: thirteen value types, and arrays of the twelve that are not arrays.

Python values map to types the obvious way: ``bool`` BOOL, ``str`` STRING, ``float`` FLOAT32, ``int`` UINT32 (INT32 if
it is negative, 64 bits if it must), a numpy scalar its own type, a list or array an ARRAY. ``Typed`` says otherwise.

Source: ``ggml/docs/gguf.md``, ``gguf_metadata_value_type``; the loader in ``ggml/src/gguf.cpp`` refuses nested arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, overload

import numpy as np

from ..errors import FormatError, MetadataError


class ValueType(IntEnum):
    """The type of a metadata value, with its number in the file."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


NUMPY = {  # the numbers; BOOL is one byte that is 0 or 1
    ValueType.UINT8: np.dtype("<u1"),
    ValueType.INT8: np.dtype("<i1"),
    ValueType.UINT16: np.dtype("<u2"),
    ValueType.INT16: np.dtype("<i2"),
    ValueType.UINT32: np.dtype("<u4"),
    ValueType.INT32: np.dtype("<i4"),
    ValueType.FLOAT32: np.dtype("<f4"),
    ValueType.BOOL: np.dtype("bool"),
    ValueType.UINT64: np.dtype("<u8"),
    ValueType.INT64: np.dtype("<i8"),
    ValueType.FLOAT64: np.dtype("<f8"),
}
_TYPES = {dtype: kind for kind, dtype in NUMPY.items()}


class Typed(NamedTuple):
    """A value with its type spelled out; ``of`` is the type of an array's elements.

    >>> encode_value(Typed(1, ValueType.UINT64)).hex(" ")
    '0a 00 00 00 01 00 00 00 00 00 00 00'
    """

    value: Any
    kind: ValueType
    of: ValueType | None = None


class StringArray(Sequence[str]):
    """An array of strings in a mapped file: found once, decoded only when asked for."""

    def __init__(self, data: memoryview, starts: Sequence[int], where: str, path: str) -> None:
        self._data, self._starts, self._where, self._path = data, starts, where, path

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._decode(start) for start in self._starts[index]]
        return self._decode(self._starts[index])

    def __iter__(self) -> Iterator[str]:
        return map(self._decode, self._starts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:4]))
        return f"<{len(self)} strings: {shown}{', …' if len(self) > 4 else ''}>"

    def _decode(self, start: int) -> str:
        (length,) = struct.unpack_from("<Q", self._data, start)
        try:
            return str(self._data[start + 8 : start + 8 + length], "utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(
                f"not valid UTF-8 ({error.reason})", path=self._path, field=self._where, offset=start + 8 + error.start
            ) from None


# ---- writing ---------------------------------------------------------------------------------------------------------


def encode_string(text: str) -> bytes:
    """A u64 length in bytes, then UTF-8.

    >>> encode_string("é").hex(" ")
    '02 00 00 00 00 00 00 00 c3 a9'
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise MetadataError(f"{text!r} is not valid Unicode text") from error
    return struct.pack("<Q", len(data)) + data


def encode_metadata(metadata: Mapping[str, Any]) -> bytes:
    """All key-values, one behind the other: key, u32 type, value.

    Raises ``MetadataError`` for a key or value that the format, or llama.cpp's loader, has no place for.
    """
    parts = []
    for key, value in metadata.items():
        if not isinstance(key, str) or not key.isascii() or not key.isprintable() or not 1 <= len(key) <= 0xFFFF:
            raise MetadataError(f"the key {key!r} is not 1 to 65535 printable ASCII characters")
        try:
            parts.append(encode_string(key) + encode_value(value))
        except MetadataError as error:
            raise MetadataError(f"metadata {key!r}: {error}") from None
    return b"".join(parts)


def encode_value(value: Any) -> bytes:
    """A u32 type, then the value."""
    typed = value if isinstance(value, Typed) else infer(value)
    head = struct.pack("<I", typed.kind)
    if typed.kind != ValueType.ARRAY:
        return head + _encode_items([typed.value], typed.kind)
    if typed.of is None or typed.of == ValueType.ARRAY:
        raise MetadataError("an array needs the type of its elements, and arrays of arrays are refused by llama.cpp")
    return head + struct.pack("<IQ", typed.of, len(typed.value)) + _encode_items(typed.value, typed.of)


def infer(value: Any) -> Typed:
    """The type that a plain Python value gets.

    >>> infer(-1).kind.name, infer([1.5]).of.name, infer(np.uint16(3)).kind.name
    ('INT32', 'FLOAT32', 'UINT16')
    """
    if isinstance(value, bool | np.bool_):
        return Typed(value, ValueType.BOOL)
    if isinstance(value, str):
        return Typed(value, ValueType.STRING)
    if isinstance(value, int):
        return Typed(value, _int_type(value, value, ValueType.UINT32))
    if isinstance(value, float) and not isinstance(value, np.generic):
        return Typed(value, ValueType.FLOAT32)
    if isinstance(value, np.generic) and value.dtype.newbyteorder("<") in _TYPES:
        return Typed(value, _TYPES[value.dtype.newbyteorder("<")])
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.newbyteorder("<") in _TYPES:
        return Typed(value, ValueType.ARRAY, _TYPES[value.dtype.newbyteorder("<")])
    if isinstance(value, list | tuple | StringArray):
        return Typed(value, ValueType.ARRAY, _element_type(value))
    raise MetadataError(f"no GGUF type for a {type(value).__name__}; pass text, a number, a flat list, or Typed(...)")


def _element_type(items: Sequence[Any]) -> ValueType:
    if isinstance(items, StringArray) or (items and all(isinstance(item, str) for item in items)):
        return ValueType.STRING
    if items and all(isinstance(item, bool) for item in items):
        return ValueType.BOOL
    if items and all(isinstance(item, int) and not isinstance(item, bool) for item in items):
        return _int_type(min(items), max(items), ValueType.INT32)
    if items and all(isinstance(item, int | float) and not isinstance(item, bool) for item in items):
        return ValueType.FLOAT32
    raise MetadataError(
        "a list needs elements of one kind, and at least one; for an empty one, pass Typed([], ARRAY, …)"
    )


def _int_type(low: int, high: int, first: ValueType) -> ValueType:
    for kind in (first, ValueType.INT32, ValueType.UINT32, ValueType.INT64, ValueType.UINT64):
        limits = np.iinfo(NUMPY[kind])
        if limits.min <= low and high <= limits.max:
            return kind
    raise MetadataError(f"the integers {low} to {high} do not fit in 64 bits")


def _encode_items(items: Sequence[Any], kind: ValueType) -> bytes:
    if kind == ValueType.STRING:
        if not all(isinstance(item, str) for item in items):
            raise MetadataError("expected strings")
        return b"".join(map(encode_string, items))
    try:
        array = np.array(items)
        if len(items) == 0:
            return b""
        out = array.astype(NUMPY[kind])
    except (ValueError, TypeError, OverflowError) as error:
        raise MetadataError(f"{items!r} is not of type {kind.name}: {error}") from None
    floating = kind in (ValueType.FLOAT32, ValueType.FLOAT64)
    with np.errstate(all="ignore"):
        same = np.isclose(out, array, rtol=1e-6, atol=1e-44, equal_nan=True) if floating else out == array
    if (
        array.ndim != 1
        or array.dtype.kind not in "biuf"
        or not np.all(same)
        or (array.dtype.kind == "b") != (out.dtype.kind == "b")
    ):
        raise MetadataError(f"{items!r:.80} does not fit the type {kind.name}")
    return out.tobytes()
