"""Real GGUF, version 3: the layout, and how to read it. Little-endian throughout.

1. header    <4sIQQ  b"GGUF", version 3, number of tensors, number of key-values
2. metadata  key (string), <I type, value                           a string is <Q length, UTF-8
3. tensors   name (string), <I n_dims, <{n}Q dims (in first), <I type, <Q offset
4. padding up to a multiple of general.alignment (32), then the data; every tensor starts at such a multiple

What differs from GGUF-lite: 64-bit counts, typed values, dims reversed, alignment, blocks that carry their own scales.
Where specification and loader differ, the reader takes what either of them does (a name of 64 bytes, tensors in any
order), except arrays of arrays and an alignment that is no power of two. It uses no count or length before it has
checked it against the size of the file: what it allocates for an entry, the file has paid for with the entry's bytes.

Source: ``ggml/docs/gguf.md``; ``gguf_init_from_file`` in ``ggml/src/gguf.cpp``.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from ...core.reading import Source
from ..file import TensorFile
from ..strings import walk_strings
from ..tensor import TensorInfo
from .codecs import decode
from .metadata import MAX_KEY, NUMPY, StringArray, Typed, ValueType
from .types import GGMLType

MAGIC = b"GGUF"  # as a little-endian u32: 0x46554747
VERSION = 3  # what is written
VERSIONS = (2, 3)  # what is read: 3 only added big-endian files, which no reader takes for little-endian ones
HEADER = struct.Struct("<4sIQQ")
ALIGNMENT = 32
MAX_DIMS = 4
MAX_NAME = 63  # bytes, to write; the specification says 64, the loader wants fewer
SMALLEST_PAIR = 8 + 1 + 4 + 1  # a key of one byte and a value of one
SMALLEST_INFO = 8 + 0 + 4 + 0 + 4 + 8
INTEGERS = {GGMLType.I8: "<i1", GGMLType.I16: "<i2", GGMLType.I32: "<i4", GGMLType.I64: "<i8", GGMLType.F64: "<f8"}


def padded(size: int, alignment: int) -> int:
    """``size`` up to the next multiple of ``alignment``.

    >>> padded(33, 32), padded(64, 32), padded(0, 32)
    (64, 64, 0)
    """
    return -(-size // alignment) * alignment


def read_gguf(source: Source) -> GGUFFile:
    """Open a GGUF file, by its path or as bytes, and read its tensor infos; the tensors wait until they are asked for.

    Raises ``FormatError`` for a malformed file, ``OSError`` for one that cannot be opened.
    """
    return GGUFFile(source)


class GGUFFile(TensorFile[GGMLType]):
    """An open GGUF file, usable in a ``with`` block.

    ``metadata`` maps keys to values, ``types`` to their types, ``tensors`` names to ``TensorInfo``. Numeric arrays are
    numpy arrays, arrays of strings are decoded when asked for. ``spans`` gives the first byte of each key-value and
    tensor info, and the one after its last.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source, HEADER.size)
        self.alignment = ALIGNMENT
        self.metadata: dict[str, Any] = {}
        self.types: dict[str, tuple[ValueType, ValueType | None]] = {}
        self.tensors: dict[str, TensorInfo[GGMLType]] = {}
        self.spans: dict[str, tuple[int, int]] = {}
        n_tensors, n_pairs = self._read_header()
        position = HEADER.size
        for index in range(n_pairs):
            position = self._read_pair(index, position)
        self._read_alignment()
        for index in range(n_tensors):
            position = self._read_info(index, position)
        self.data_start = padded(position, self.alignment)
        infos = [info for info in self.tensors.values() if info.n_bytes]  # an empty one may point anywhere
        self._check_places((t.name, t.offset, t.n_bytes, self.spans[f"tensor:{t.name}"][1] - 8) for t in infos)

    def tensor(self, name: str) -> np.ndarray:
        """A tensor decoded: ``info.shape``, float32 (integer and float64 tensors keep their type), a fresh array.

        Raises ``QuantizationError`` for a type that has no codec here.
        """
        info, raw = self._info(name), self.raw(name)
        if info.dtype in INTEGERS:
            return np.frombuffer(raw, INTEGERS[info.dtype]).reshape(info.shape).copy()
        w = decode(raw, info.dtype).reshape(info.shape)
        return w if w.flags.writeable else w.copy()  # F32 is still the file

    @property
    def architecture(self) -> str:
        """``general.architecture``, or unknown."""
        return str(self.metadata.get("general.architecture", "unknown"))

    def entry_place(self, name: str) -> tuple[int, int] | None:
        """A tensor's info."""
        return self.spans[f"tensor:{name}"]

    def key_place(self, key: str) -> tuple[int, int] | None:
        """A key, its type and its value."""
        return self.spans[f"metadata:{key}"]

    def typed(self) -> dict[str, Typed]:
        """The metadata with its types, as ``write_gguf`` takes it, so that a copy is exact."""
        return {key: Typed(value, *self.types[key]) for key, value in self.metadata.items()}

    # -- the parts of the format, in their order

    def _read_header(self) -> tuple[int, int]:
        magic, version, n_tensors, n_pairs = HEADER.unpack(self._bytes(0, HEADER.size))
        if magic != MAGIC:
            hint = "; this is a GGUF-lite file" if magic == b"TFLG" else ""
            raise self._error(f"found {magic!r}, a GGUF file begins with {MAGIC!r}{hint}", "header.magic", 0)
        if version and version & 0xFFFF == 0:
            raise self._error(
                "the file is big-endian, and this reader reads little-endian files only", "header.version", 4
            )
        self.version = version
        if version not in VERSIONS:
            older = "; version 1 is obsolete, convert the model again" if version == 1 else ""
            raise self._error(f"found version {version}, this reader knows 2 and 3{older}", "header.version", 4)
        room = self.n_bytes - HEADER.size
        for count, smallest, field, at in (
            (n_tensors, SMALLEST_INFO, "header.n_tensors", 8),
            (n_pairs, SMALLEST_PAIR, "header.n_kv", 16),
        ):
            if count * smallest > room:
                raise self._error(f"found {count}, and the file has room for {room // smallest} at most", field, at)
        return n_tensors, n_pairs

    def _read_pair(self, index: int, start: int) -> int:
        key, at = self._string(start, f"key {index}", MAX_KEY)
        if not key:
            raise self._error("the key is empty", f"key {index}: length", start)
        if key in self.metadata:
            raise self._error(f"the key {key[:80]!r} stands twice; keys are unique", f"key {index}", start)
        kind, at = self._value_type(at, f"metadata {key[:80]!r}: type")
        of = None
        if kind == ValueType.ARRAY:
            of, at = self._value_type(at, f"metadata {key[:80]!r}: element type")
            self.metadata[key], at = self._array(key[:80], of, at)
        else:
            self.metadata[key], at = self._scalar(key[:80], kind, at)
        self.types[key] = (kind, of)
        self.spans[f"metadata:{key}"] = (start, at)
        return at

    def _value_type(self, at: int, field: str) -> tuple[ValueType, int]:
        (code,), after = self._take("<I", at, field)
        if code >= len(ValueType):
            raise self._error(f"found type {code}; the types are 0 to {len(ValueType) - 1}", field, at)
        return ValueType(code), after

    def _scalar(self, key: str, kind: ValueType, at: int) -> tuple[Any, int]:
        field = f"metadata {key!r}"
        if kind == ValueType.STRING:
            return self._string(at, field)
        size = NUMPY[kind].itemsize
        self._need(at, size, field)
        self._check_bool(kind, at, 1, field)
        return np.frombuffer(self._bytes(at, at + size), NUMPY[kind])[0].item(), at + size

    def _array(self, key: str, of: ValueType, at: int) -> tuple[Any, int]:
        field = f"metadata {key!r}"
        if of == ValueType.ARRAY:
            raise self._error(
                "arrays of arrays are not supported, by llama.cpp neither", f"{field}: element type", at - 4
            )
        (count,), at = self._take("<Q", at, f"{field}: length")
        if of == ValueType.STRING:
            return self._string_array(count, at, field)
        size = NUMPY[of].itemsize
        if count * size > self.n_bytes - at:
            raise self._error(
                f"found {count} elements of {size} bytes, {self.n_bytes - at} bytes are left",
                f"{field}: length",
                at - 8,
            )
        self._check_bool(of, at, count, field)
        return np.frombuffer(self._bytes(at, at + count * size), NUMPY[of]), at + count * size

    def _string_array(self, count: int, at: int, field: str) -> tuple[StringArray, int]:
        if count * 8 > self.n_bytes - at:
            raise self._error(f"found {count} strings, {self.n_bytes - at} bytes are left", f"{field}: length", at - 8)
        starts, at = walk_strings(self._data, at, count, self.n_bytes)
        if len(starts) < count:
            message = f"string {len(starts)} of {count} ends outside the file of {self.n_bytes} bytes"
            raise self._error(message, field, at)
        return StringArray(self._data, starts, field, self.path), at

    def _check_bool(self, kind: ValueType, at: int, count: int, field: str) -> None:
        if kind == ValueType.BOOL and count:
            values = np.frombuffer(self._bytes(at, at + count), np.uint8)
            if values.max() > 1:
                wrong = int(np.argmax(values > 1))
                raise self._error(f"found the byte {values[wrong]} for a truth value; it is 0 or 1", field, at + wrong)

    def _read_alignment(self) -> None:
        key = "general.alignment"
        if key not in self.metadata:
            return
        (start, end), (kind, _) = self.spans[f"metadata:{key}"], self.types[key]
        if kind != ValueType.UINT32:
            raise self._error(
                f"its type is {kind.name}, expected UINT32", f"metadata {key!r}: type", start + 8 + len(key)
            )
        self.alignment = self.metadata[key]
        if self.alignment == 0 or self.alignment & (self.alignment - 1):
            raise self._error(f"found {self.alignment}, expected a power of two", f"metadata {key!r}", end - 4)

    def _read_info(self, index: int, start: int) -> int:
        name, at = self._string(start, f"tensor {index}: name", MAX_NAME + 1)
        field = f"tensor {name!r}"
        if name in self.tensors:
            raise self._error(f"the name {name!r} stands twice; names are unique", f"tensor {index}: name", start)
        (n_dims,), dims_at = self._take("<I", at, f"{field}: n_dims")
        if n_dims > MAX_DIMS:
            raise self._error(f"found {n_dims} dims, {MAX_DIMS} at most", f"{field}: n_dims", at)
        dims, at = self._take(f"<{n_dims}Q", dims_at, f"{field}: dims")
        if math.prod(dim for dim in dims if dim) >= 2**60:  # a negative one is above 2**63
            raise self._error(
                f"the dims {dims} are negative or multiply to more than any file holds", f"{field}: dims", dims_at
            )
        (code,), at = self._take("<I", at, f"{field}: type")
        try:
            dtype = GGMLType(code)
        except ValueError:
            raise self._error(
                f"found type {code}, which is none of ggml's (any more)", f"{field}: type", at - 4
            ) from None
        if dims and dims[0] % dtype.block:
            raise self._error(
                f"rows of {dims[0]} are no multiple of {dtype.name}'s block of {dtype.block}", f"{field}: dims", dims_at
            )
        if not dims and dtype.block > 1:
            raise self._error(f"a scalar cannot be of type {dtype.name}", f"{field}: n_dims", dims_at - 4)
        (offset,), at = self._take("<Q", at, f"{field}: offset")
        if offset % self.alignment:
            raise self._error(f"found {offset}, expected a multiple of {self.alignment}", f"{field}: offset", at - 8)
        self.tensors[name] = TensorInfo(name, dims[::-1], dtype, offset)
        self.spans[f"tensor:{name}"] = (start, at)
        return at

    def _string(self, at: int, field: str, most: int | None = None) -> tuple[str, int]:
        (length,), start = self._take("<Q", at, f"{field}: length")
        if length > self.n_bytes - start:
            raise self._error(f"found {length}, {self.n_bytes - start} bytes are left", f"{field}: length", at)
        if most is not None and length > most:
            raise self._error(f"found {length} bytes, {most} at most", f"{field}: length", at)
        return self._text(start, start + length, field), start + length
