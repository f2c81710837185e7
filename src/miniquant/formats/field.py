"""Every byte of a model file has a name: the fields of a file in order, each byte in exactly one of them.

Works on malformed files too: what can be named is named, the rest is one field called "unread", and the error is the
one that the reader itself raises. Another format is one more entry in ``FORMATS``.
"""

from __future__ import annotations

import math
import os
import re
import struct
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import FormatError
from ..core.reading import MappedFile, open_regular
from ..quantization.packing import unpack_nibbles
from .gguf_lite.file import HEADER, MAGIC, MAX_DIMS, VERSION, DType, open_gguf_lite

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | MappedFile
IN_MEMORY = 1 << 26  # a file up to 64 MiB is read, a larger one is mapped
MAGIC_FIELD = "header.magic"


@dataclass(frozen=True)
class Field:
    """A run of bytes with one meaning.

    ``start`` and ``end`` (exclusive) count from the start of the file; ``kind`` is a key of ``markup.KINDS``.
    ``form`` is how ``raw`` decodes: a ``struct`` or numpy code, ``text``, ``line``, ``dims``, ``dtype``, ``nibbles``
    or ``bytes``. Arrays have a ``shape``, other fields ``None``.
    """

    name: str
    start: int
    end: int
    kind: str
    explanation: str
    raw: np.ndarray = field(compare=False)
    form: str = "bytes"
    shape: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Field({self.name!r}, {self.start}, {self.end}, {self.kind!r}, value={self.text()})"

    @property
    def value(self) -> Any:
        """What the bytes stand for: a number, a string, a tuple of dims, a ``DType``, or an array in its shape."""
        value = _decode(self.raw, self.form)
        return value.reshape(self.shape) if self.shape is not None and value.size == math.prod(self.shape) else value

    def parts(self, start: int, end: int) -> str:
        """Which parts of the field lie in the file's bytes ``start`` to ``end``, if it has parts with names."""
        return ""

    def text(self, start: int | None = None, end: int | None = None) -> str:
        """The value as short text; of an array, the elements that lie in the file's bytes ``start`` to ``end``."""
        if self.shape is None:
            return _show(_decode(self.raw, self.form), self.name)
        size, per_byte = _ITEM[self.form], 2 if self.form == "nibbles" else 1
        first = (max(self.start, start or 0) - self.start) // size
        last = math.ceil((min(self.end, self.end if end is None else end) - self.start) / size)
        shown = 6 if start is None else 32
        items = _decode(self.raw[first * size : min(last, first + shown) * size], self.form)
        if not len(items):
            return "cut short"
        listed = ", ".join(f"{x:.4g}" if items.dtype.kind == "f" else str(x) for x in items.tolist())
        place = _place(first * per_byte, last * per_byte - 1, self.shape)
        return f"{place}: {listed}" + (", …" if last > first + shown else "")


_ITEM = {"<f4": 4, "<f2": 2, "i1": 1, "nibbles": 1}


def _decode(raw: np.ndarray, form: str) -> Any:
    if form in _ITEM:
        whole = np.ascontiguousarray(raw[: len(raw) // _ITEM[form] * _ITEM[form]])
        return unpack_nibbles(whole) if form == "nibbles" else whole.view(form)
    data = bytes(raw)
    if form == "bytes":
        return data
    if form in ("text", "line"):
        text = data.decode("utf-8", "replace")
        return text.removesuffix("\n").partition("=")[2] if form == "line" else text
    if form == "dims":
        return struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])
    code = "<B" if form == "dtype" else form
    if struct.calcsize(code) != len(data):
        return data  # cut short
    (number,) = struct.unpack(code, data)
    return DType(number) if form == "dtype" and number < len(DType) else number


def _show(value: Any, name: str) -> str:
    if isinstance(value, bytes):
        return value[:16].hex(" ") + (" …" if len(value) > 16 else "")
    if isinstance(value, DType):
        return f"{value.value} ({value.name})"
    if name == MAGIC_FIELD and isinstance(value, int):
        return f"0x{value:08X}"
    if isinstance(value, tuple):
        return " × ".join(map(str, value))
    return repr(value if len(value) <= 80 else value[:79] + "…") if isinstance(value, str) else str(value)


def _place(first: int, last: int, shape: tuple[int, ...]) -> str:
    """Where the elements ``first`` to ``last`` of a flat array stand: ``[0, 4] to [0, 7]``."""
    if not shape:
        return "the number"
    last = min(last, math.prod(shape) - 1)
    ends = [str([int(i) for i in np.unravel_index(k, shape)]) for k in dict.fromkeys((first, last))]
    return " to ".join(ends)


class Format(NamedTuple):
    """How to name the bytes of a format, and how its reader is asked what is wrong with a file: by ``FormatError``.

    ``walk`` gets the bytes, and the path of the file if it has one: a format may need what lies beside it.
    """

    walk: Callable[[np.ndarray, str | None], Iterator[Field]]
    check: Callable[[str | os.PathLike[str]], None]


def fields(source: Source) -> list[Field]:
    """Name every byte of a GGUF-lite, GGUF or bump file (a path, bytes, or an open file), in the order of the file.

    Never raises for a malformed file: what cannot be named is then a field "unread".
    Raises ``OSError`` if it cannot be opened, ``FormatError`` if it is a pipe or a device.
    """
    return parse(source)[0]


def parse(source: Source) -> tuple[list[Field], FormatError | None]:
    """``fields`` and, for a malformed file, the error with which its reader stops (without the path)."""
    data = load(source)
    form = FORMATS.get(bytes(data[:4]), FORMATS[struct.pack("<I", MAGIC)])
    error = _error_of(source, data, form)
    found: list[Field] = []
    for part in form.walk(data, _path_of(source)):
        if error and part.kind != "header" and part.start > (error.offset or 0) and not _about_data(error):
            break
        found.append(part)
    return _with_gaps(found, data, error), error


def load(source: Source) -> np.ndarray:
    """The bytes of a file, or the bytes themselves: (n,) uint8; large files are mapped, not read."""
    if isinstance(source, bytes | bytearray | memoryview):
        return np.frombuffer(bytes(source), np.uint8)
    path = _path_of(source)
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > IN_MEMORY:
            return np.memmap(file, np.uint8, "r").view(np.ndarray)
        return np.frombuffer(file.read(), np.uint8)


def label_of(source: Source, otherwise: str = "bytes") -> str:
    """A file's name without its folder: what a picture calls it, the same on every machine."""
    if isinstance(source, bytes | bytearray | memoryview):
        return otherwise
    return os.path.basename(_path_of(source))


def _path_of(source: Source) -> str | None:
    """The path of a file, ``None`` for bytes."""
    if isinstance(source, bytes | bytearray | memoryview):
        return None
    return source.path if isinstance(source, MappedFile) else os.fsdecode(source)


def _error_of(source: Source, data: np.ndarray, form: Format) -> FormatError | None:
    try:
        if (path := _path_of(source)) is not None:
            form.check(path)
        else:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                path = os.path.join(folder, "file")
                with open(path, "wb") as file:
                    file.write(data.tobytes())
                form.check(path)
    except FormatError as error:
        message = str(error).removeprefix(f"{error.path}: ")
        where = f"{error.field or ''} at byte {error.offset}: ".lstrip()
        return FormatError(message.removeprefix(where), field=error.field, offset=error.offset)
    return None


def _about_data(error: FormatError) -> bool:
    """Whether all descriptors were read, and only where a tensor's data lies, or what is in it, is wrong."""
    field = error.field or ""
    places = field.startswith("tensor ") and field.endswith((": offset", ": scales"))
    return places or field == "header.checksum"


def _with_gaps(found: list[Field], data: np.ndarray, error: FormatError | None) -> list[Field]:
    """The fields, and what lies between and after them."""
    whole, at = [], 0
    for part in [*found, None]:
        end = len(data) if part is None else part.start
        if end > at and error:
            whole.append(Field("unread", at, end, "unread", "a reader stops before it gets here", data[at:end]))
        elif end > at:
            whole.append(Field("padding", at, end, "padding", "no tensor claims these bytes", data[at:end]))
        if part is not None:
            whole.append(part)
            at = part.end
    return whole


# ---- GGUF-lite -------------------------------------------------------------------------------------------------------


class _Walk:
    """A position in the bytes; ``take`` names the next ones, and raises ``EOFError`` if the file ends first."""

    def __init__(self, data: np.ndarray) -> None:
        self.data, self.at = data, 0

    def take(self, name: str, size: int, kind: str, form: str, explanation: str) -> Field:
        if self.at + size > len(self.data):
            raise EOFError
        start, self.at = self.at, self.at + size
        return Field(name, start, self.at, kind, explanation, self.data[start : self.at], form)


def gguf_lite_fields(data: np.ndarray, _: str | None = None) -> Iterator[Field]:
    """The fields of a GGUF-lite file, as far as its structure carries; zero-length fields are left out."""
    walk, infos = _Walk(data), []
    try:
        yield (
            magic := walk.take(
                MAGIC_FIELD,
                4,
                "header",
                "<I",
                "says which format this is; stored low byte first",
            )
        )
        if magic.value != MAGIC:
            return
        yield (version := walk.take("header.version", 4, "header", "<I", "the version of the format"))
        if version.value != VERSION:
            return
        yield (count := walk.take("header.n_tensors", 4, "header", "<I", "how many descriptors follow the metadata"))
        yield (size := walk.take("header.metadata_len", 4, "header", "<I", "how many bytes of metadata follow"))
        yield from _metadata(walk, size.value)
        for index in range(count.value):
            yield from _descriptor(walk, index, infos)
    except EOFError:
        return
    yield from _tensors(data, walk.at, infos)


def _metadata(walk: _Walk, size: int) -> Iterator[Field]:
    end = HEADER.size + size
    if end > len(walk.data):
        raise EOFError
    for line in re.findall(rb"[^\n]*\n|[^\n]+", bytes(walk.data[walk.at : end])):
        key = line.partition(b"=")[0].decode("utf-8", "replace").strip("\n")[:60]
        yield walk.take(f"metadata {key!r}", len(line), "metadata", "line", "one line of text, key=value")


def _descriptor(walk: _Walk, index: int, infos: list[tuple[str, tuple[int, ...], Any, int]]) -> Iterator[Field]:
    length = walk.take(f"descriptor {index}: name_len", 2, "name", "<H", "how many bytes the name takes")
    yield length
    if walk.at + length.value > len(walk.data):
        raise EOFError
    name = bytes(walk.data[walk.at : walk.at + length.value]).decode("utf-8", "replace")
    tensor = f"tensor {name[:60]!r}"
    if name:
        yield walk.take(f"{tensor}: name", length.value, "name", "text", "the parameter's name, UTF-8")
    yield (n_dims := walk.take(f"{tensor}: n_dims", 1, "shape", "<B", "how many dims follow"))
    if n_dims.value > MAX_DIMS:
        raise EOFError
    dims = walk.take(f"{tensor}: dims", 4 * n_dims.value, "shape", "dims", "the shape, out first, as PyTorch has it")
    if len(dims):
        yield dims
    yield (dtype := walk.take(f"{tensor}: dtype", 1, "dtype", "dtype", "how the values are stored"))
    yield (offset := walk.take(f"{tensor}: offset", 8, "offset", "<Q", "where its data begins in the data section"))
    infos.append((tensor, dims.value, dtype.value, offset.value))


def _tensors(data: np.ndarray, start: int, infos: list[tuple[str, tuple[int, ...], Any, int]]) -> Iterator[Field]:
    """Scales and values of each tensor, by offset; what overlaps is left out, what the file's end cuts is shortened."""
    end = start
    for tensor, dims, dtype, offset in sorted(infos, key=lambda info: info[3]):
        fits = isinstance(dtype, DType) and (dtype < DType.Q8_PER_CHANNEL or len(dims) == 2)
        if not fits or start + offset < end or start + offset >= len(data):
            continue
        scales, size = dtype.scale_bytes(dims), dtype.bytes_of(dims)
        per_group = dtype == DType.Q4_PER_GROUP_64
        each, shape = ("group of 64 in a row", dtype.scale_shape(dims)) if per_group else ("row", dims[:1])
        form, what = _VALUES[dtype]
        parts = [
            ("scales", scales, "<f2", f"a float16 scale for each {each}", shape),
            ("values", size - scales, form, what, dims),
        ]
        at = start + offset
        for kind, length, form, what, shape in parts:
            stop = min(at + length, len(data))
            if stop > at:
                cut = f"; cut short: {stop - at} of {length} bytes" if stop - at < length else ""
                yield Field(f"{tensor}: {kind}", at, stop, kind, what + cut, data[at:stop], form, shape)
            at = end = stop


def _check_gguf_lite(path: str | os.PathLike[str]) -> None:
    """Raise what the reader raises on opening the file, or on reading a scale that is not finite."""
    with open_gguf_lite(path) as file:
        for name, info in file.tensors.items():
            scales = file.raw(name)[: info.dtype.scale_bytes(info.shape)].view("<f2")
            if not np.isfinite(scales).all():
                file.quantized(name)


_VALUES = {
    DType.F32: ("<f4", "the weights, float32"),
    DType.F16: ("<f2", "the weights, float16"),
    DType.Q8_PER_CHANNEL: ("i1", "8-bit integers; times its row's scale, each is a weight"),
    DType.Q4_PER_GROUP_64: (
        "nibbles",
        "4-bit integers, two a byte, low nibble first; times its group's scale, each is a weight",
    ),
}


def _gguf_fields(data: np.ndarray, _: str | None) -> Iterator[Field]:
    from .gguf.fields import gguf_fields  # which needs this module

    return gguf_fields(data)


def _check_gguf(path: str | os.PathLike[str]) -> None:
    from .gguf.fields import check_gguf

    check_gguf(path)


def _bump_fields(data: np.ndarray, path: str | None) -> Iterator[Field]:
    from .bump.fields import bump_fields

    return bump_fields(data, path)


def _check_bump(path: str | os.PathLike[str]) -> None:
    from .bump.fields import check_bump

    check_bump(path)


FORMATS = {  # by the first four bytes
    struct.pack("<I", MAGIC): Format(gguf_lite_fields, _check_gguf_lite),
    b"GGUF": Format(_gguf_fields, _check_gguf),
    b"BUMP": Format(_bump_fields, _check_bump),
}
