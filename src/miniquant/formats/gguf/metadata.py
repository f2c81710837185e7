"""The typed key-values of GGUF: thirteen value types, and arrays of the twelve that are not arrays.

Python values map to types the obvious way: ``bool`` BOOL, ``str`` STRING, ``float`` FLOAT32, ``int`` UINT32 (INT32 if
it is negative, 64 bits if it must), a numpy scalar its own type, a list or array an ARRAY. ``Typed`` says otherwise.

Source: ``ggml/docs/gguf.md``, ``gguf_metadata_value_type``; the loader in ``ggml/src/gguf.cpp`` refuses nested arrays.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, overload

import numpy as np

from ...core.errors import MetadataError
from ...core.reading import decode_text
from ...core.slices import Slices, ahead, stretch
from ..strings import LENGTH


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


NUMPY: dict[ValueType, np.dtype[Any]] = {  # the numbers; BOOL is one byte that is 0 or 1
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
_NUMBERS = set(map(int, ValueType))
_BOOLS: tuple[type, ...] = (bool, np.bool_)
# by the kind of dtype: the classes of its values, and the kinds of numpy arrays that it takes
_TAKES: dict[str, tuple[tuple[type, ...], str]] = {
    "b": (_BOOLS, "b"),
    "i": ((int, np.integer), "iu"),
    "u": ((int, np.integer), "iu"),
    "f": ((int, float, np.integer, np.floating), "iuf"),
}
KEY = re.compile(r"[0-9A-Za-z_.-]+")  # the specification: segments of lower snake case; files have capitals and "-" too
MAX_KEY = 0xFFFF


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

    def __init__(self, data: memoryview | Slices, starts: Sequence[int], where: str, path: str | None) -> None:
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
        piece, base = memoryview(b""), 0
        for start in self._starts:
            if start + LENGTH.size > base + len(piece):
                piece, base = ahead(self._data, start), start
            at = start + LENGTH.size - base
            end = at + LENGTH.unpack_from(piece, start - base)[0]
            try:
                yield str(piece[at:end], "utf-8") if end <= len(piece) else self._decode(start)
            except UnicodeDecodeError:
                self._decode(start)  # raises what says where

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:4]))
        return f"<{len(self)} strings: {shown}{', …' if len(self) > 4 else ''}>"

    def _decode(self, start: int) -> str:
        (length,) = LENGTH.unpack(stretch(self._data, start, start + LENGTH.size))
        return decode_text(self._data, start + LENGTH.size, length, self._where, self._path)


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
    """All key-values, one after the other: key, u32 type, value.

    Raises ``MetadataError`` for a key or value that the format, or llama.cpp's loader, has no place for.
    """
    parts = []
    for key, value in metadata.items():
        if not isinstance(key, str) or len(key) > MAX_KEY or not KEY.fullmatch(key):
            raise MetadataError(
                f"the key {key!r:.80} is not 1 to {MAX_KEY} of ASCII's letters, digits, '.', '_' and '-'"
            )
        try:
            parts.append(encode_string(key) + encode_value(value))
        except MetadataError as error:
            raise MetadataError(f"metadata {key!r}: {error}") from None
    return b"".join(parts)


def encode_value(value: Any) -> bytes:
    """A u32 type, then the value."""
    value, kind, of = value if isinstance(value, Typed) else infer(value)
    if kind not in _NUMBERS or (kind == ValueType.ARRAY and of not in _NUMBERS):
        raise MetadataError(f"kind {kind!r} of {of!r} is no type; each is a member of ValueType")
    head = struct.pack("<I", kind)
    if kind != ValueType.ARRAY:
        return head + _encode_items([value], ValueType(kind))
    if of is None or of == ValueType.ARRAY:
        raise MetadataError("arrays of arrays are refused by llama.cpp; make it one flat array, or several keys")
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray):
        raise MetadataError(f"an array takes a list or a numpy array, found a {type(value).__name__}")
    return head + struct.pack("<IQ", of, len(value)) + _encode_items(value, ValueType(of))


def infer(value: Any) -> Typed:
    """The type that a plain Python value gets.

    >>> infer(-1).kind.name, infer([1.5]).of.name, infer(np.uint16(3)).kind.name
    ('INT32', 'FLOAT32', 'UINT16')
    """
    if isinstance(value, np.generic | np.ndarray) and not isinstance(value, str):
        kind = _TYPES.get(value.dtype.newbyteorder("<"))
        if kind is None or value.ndim > 1:
            raise MetadataError(
                f"no type for shape {value.shape} of {value.dtype}; GGUF has flat arrays of plain numbers"
            )
        return Typed(value, ValueType.ARRAY, kind) if value.ndim else Typed(np.asarray(value)[()], kind)
    if isinstance(value, bool):
        return Typed(value, ValueType.BOOL)
    if isinstance(value, str):
        return Typed(value, ValueType.STRING)
    if isinstance(value, int):
        return Typed(value, _int_type(value, value, ValueType.UINT32))
    if isinstance(value, float):
        return Typed(value, ValueType.FLOAT32)
    if isinstance(value, list | tuple | StringArray):
        return Typed(value, ValueType.ARRAY, _element_type(value))
    raise MetadataError(f"no GGUF type for a {type(value).__name__}; pass text, a number, a flat list, or Typed(...)")


def _element_type(items: Sequence[Any]) -> ValueType:
    if isinstance(items, StringArray):
        return ValueType.STRING
    if not items:
        raise MetadataError("an empty list has no type; pass Typed([], ValueType.ARRAY, ...) with the elements' type")
    classes = {type(item) for item in items}
    plain = not any(issubclass(kind, bool | str | np.generic) for kind in classes)
    if plain and all(issubclass(kind, int) for kind in classes):
        return _int_type(min(items), max(items), ValueType.INT32)
    if plain and all(issubclass(kind, int | float) for kind in classes):
        return ValueType.FLOAT32
    if len(classes) == 1:
        return infer(items[0]).kind
    names = ", ".join(sorted(kind.__name__ for kind in classes))
    raise MetadataError(f"a list needs elements of one kind, found {names}; pass Typed(...) to say which is meant")


def _int_type(low: int, high: int, first: ValueType) -> ValueType:
    for kind in (first, ValueType.INT32, ValueType.UINT32, ValueType.INT64, ValueType.UINT64):
        limits = np.iinfo(NUMPY[kind])
        if limits.min <= low and high <= limits.max:
            return kind
    raise MetadataError(f"no type of 64 bits holds integers from {low} to {high}")


def _encode_items(items: Sequence[Any] | np.ndarray, kind: ValueType) -> bytes:
    """Values one after the other. Each must be of the type; a float may be rounded to it, and that is all."""
    if kind == ValueType.STRING:
        if not all(isinstance(item, str) for item in items):
            raise MetadataError("found something else than text for the type STRING")
        return b"".join(map(encode_string, items))
    dtype = NUMPY[kind]
    classes, letters = _TAKES[dtype.kind]
    if isinstance(items, np.ndarray):
        fits = items.ndim == 1 and items.dtype.kind in letters
    else:
        fits = all(isinstance(x, classes) and isinstance(x, _BOOLS) == (kind == ValueType.BOOL) for x in items)
    if not fits:
        raise MetadataError(f"{items!r:.80} does not fit the type {kind.name}")
    if dtype.kind in "iu" and len(items):
        low, high, limits = int(min(items)), int(max(items)), np.iinfo(dtype)
        if low < limits.min or high > limits.max:
            raise MetadataError(
                f"{kind.name} holds {limits.min} to {limits.max}, found {low if low < limits.min else high}"
            )
    try:
        with np.errstate(all="ignore"):
            out = np.array(items, dtype)
            if dtype.kind == "f" and np.any(np.isinf(out) & np.isfinite(np.array(items, np.float64))):
                raise OverflowError
    except OverflowError:
        raise MetadataError(f"{items!r:.80} is beyond {kind.name}") from None
    return out.tobytes()
