"""GGUF-lite, version 1: write, read and open the assignment's container. Little-endian throughout.

1. header       <4I  magic, version, n_tensors, metadata_len
2. metadata     metadata_len bytes of UTF-8, key=value lines joined by newlines
3. descriptors  n_tensors times:  <H name_len, name,  <B n_dims,  <{n}I dims (out first),  <B dtype,  <Q offset
4. data         the tensors; an offset counts from the first byte after the last descriptor

A reader goes by the offsets and believes nothing: each count and length is held against the size of the file
before anything is read or allocated.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.arrays import row_chunks, to_numpy
from ...core.errors import MetadataError, QuantizationError, SchemeError
from ...core.files import atomic_write
from ...core.reading import MappedFile
from ...quantization.packing import pack_nibbles, unpack_nibbles
from ...quantization.schemes import GROUP_SIZE, SCHEMES, resolve, state_dict_of
from ...quantization.symmetric import Quantized, absmax_scales, cast_checked, dequantize_rows, quantize_rows
from ..tensor import TensorInfo

if TYPE_CHECKING:
    from torch import Tensor

MAGIC = 0x474C4654  # "GLFT" read as a number; little-endian, its bytes on disk are 54 46 4C 47: "TFLG"
VERSION = 1
HEADER = struct.Struct("<4I")
SMALLEST_DESCRIPTOR = 2 + 1 + 1 + 0 + 1 + 8  # a name of one byte and no dims
MAX_DIMS = 64  # the most that a numpy array can have
MAX_CELLS = 2**60  # bound on the product of nonzero dims


class DType(IntEnum):
    """The dtype byte of a descriptor."""

    F32 = 0
    F16 = 1
    Q8_PER_CHANNEL = 2  # scales: out × f16, then values: out × in × i8
    Q4_PER_GROUP_64 = 3  # scales: out × (in / 64) × f16, then values: out × in / 2 bytes, low nibble first

    @property
    def scheme(self) -> str:
        """The name of this dtype in a ``schemes`` dict."""
        return SCHEMES[self]

    @property
    def block(self) -> int:
        """A row's length is a multiple of it."""
        return GROUP_SIZE if self == DType.Q4_PER_GROUP_64 else 1

    @property
    def description(self) -> str:
        """What the bytes of a tensor hold, in their order."""
        return _DESCRIPTIONS[self]

    def scale_shape(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """The shape of a tensor's scales; ``None`` for types without any.

        >>> DType.Q8_PER_CHANNEL.scale_shape((4, 128)), DType.Q4_PER_GROUP_64.scale_shape((4, 128))
        ((4,), (4, 2))
        """
        if self == DType.Q8_PER_CHANNEL:
            return shape[:1]
        return (shape[0], shape[1] // GROUP_SIZE) if self == DType.Q4_PER_GROUP_64 else None

    def scale_bytes(self, shape: tuple[int, ...]) -> int:
        """The bytes of a tensor's float16 scales; 0 for types without any.

        >>> DType.Q8_PER_CHANNEL.scale_bytes((4, 64)), DType.Q4_PER_GROUP_64.scale_bytes((4, 128))
        (8, 16)
        """
        scales = self.scale_shape(shape)
        return 0 if scales is None else 2 * math.prod(scales)

    def bytes_of(self, shape: tuple[int, ...]) -> int:
        """The bytes of a tensor in the data section, scales included.

        >>> [dtype.bytes_of((4, 64)) for dtype in DType], DType.F32.bytes_of(())
        ([1024, 512, 264, 136], 4)
        """
        return self.scale_bytes(shape) + math.prod(shape) * _VALUE_BITS[self] // 8


_VALUE_BITS = {DType.F32: 32, DType.F16: 16, DType.Q8_PER_CHANNEL: 8, DType.Q4_PER_GROUP_64: 4}
_DESCRIPTIONS = {
    DType.F32: "the weights, float32",
    DType.F16: "the weights, float16",
    DType.Q8_PER_CHANNEL: "a float16 scale for each row, then 8-bit integers; times its row's scale, each is a weight",
    DType.Q4_PER_GROUP_64: f"a float16 scale for each group of {GROUP_SIZE} in a row, then 4-bit integers, two a byte, "
    "low nibble first; times its group's scale, each is a weight",
}


def n_cells(shape: tuple[int, ...]) -> int:
    """The product of the nonzero dims: with a 0 among them, the others may still be too large."""
    return math.prod(dim for dim in shape if dim)


# ---- writing ---------------------------------------------------------------------------------------------------------


def write_gguf_lite(
    path: str | os.PathLike[str],
    model: Any,
    schemes: Mapping[str, str],
    metadata: Mapping[str, Any] | None = None,
    chosen: Mapping[str, Quantized] | None = None,
) -> None:
    """Write a model to ``path`` as GGUF-lite, atomically; the same model gives the same bytes.

    ``model`` is an ``nn.Module`` or a state dict; ``schemes`` maps parameter names to ``f32``, ``f16``,
    ``q8_per_channel`` or ``q4_per_group_64``, and what it does not name is stored as ``f32``. ``metadata`` adds to
    what a reader needs anyway: ``dims_order``, ``group_size`` and the model's config. ``chosen`` holds the integers and
    scales of quantized tensors where somebody has chosen them already: they are stored as they are.

    Raises ``SchemeError``, ``QuantizationError`` or ``MetadataError`` for what the format cannot hold, ``WriteError``
    if the file cannot be written. In each case an existing file stays as it was.
    """
    state = state_dict_of(model)
    infos = layout({n: tuple(w.shape) for n, w in state.items()}, resolve(model, schemes))
    ready = _encode_chosen(infos, chosen or {})
    block = encode_metadata(_with_own_metadata(model, {} if metadata is None else metadata))
    with atomic_write(path) as file:
        file.write(HEADER.pack(MAGIC, VERSION, len(infos), len(block)))  # 1. header
        file.write(block)  # 2. metadata
        for info in infos:  # 3. descriptors
            file.write(encode_descriptor(info))
        for info in infos:  # 4. data
            if info.name in ready:
                file.write(ready[info.name])
                continue
            try:
                for part in encode_tensor(to_numpy(state[info.name]), info.dtype):
                    file.write(part)
            except QuantizationError as error:
                raise QuantizationError(f"{info.name!r}: {error}") from None


def layout(shapes: Mapping[str, tuple[int, ...]], schemes: Mapping[str, str]) -> list[TensorInfo[DType]]:
    """The descriptors of a file: in order, back to back. The sizes follow from the shapes; no weight is touched.

    >>> [info.offset for info in layout({"a": (2, 64), "b": (3,)}, {"a": "q4_per_group_64", "b": "f32"})]
    [0, 68]
    """
    infos, offset = [], 0
    for name, shape in shapes.items():
        info = TensorInfo(name, shape, DType(SCHEMES.index(schemes[name])), offset)
        infos.append(info)
        offset += info.n_bytes
    return infos


def encode_descriptor(info: TensorInfo[DType]) -> bytes:
    """<H name_len, name, <B n_dims, <{n}I dims, <B dtype, <Q offset.

    >>> encode_descriptor(TensorInfo("w", (2, 3), DType.F16, 8)).hex(" ")
    '01 00 77 02 02 00 00 00 03 00 00 00 01 08 00 00 00 00 00 00 00'
    """
    try:
        name = info.name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SchemeError(f"the parameter name {info.name!r} is not valid Unicode text") from error
    if not 1 <= len(name) <= 0xFFFF:
        raise SchemeError(f"the name {info.name[:40]!r} takes {len(name)} bytes of UTF-8; the format holds 1 to 65535")
    if len(info.shape) > MAX_DIMS:
        raise SchemeError(f"{info.name!r} has {len(info.shape)} dims; an array has {MAX_DIMS} at most")
    if any(dim > 0xFFFFFFFF for dim in info.shape) or n_cells(info.shape) >= MAX_CELLS:
        raise SchemeError(f"{info.name!r} has shape {info.shape}; dims stay below 2**32, and their product below 2**60")
    dims = struct.pack(f"<B{len(info.shape)}I", len(info.shape), *info.shape)
    return struct.pack("<H", len(name)) + name + dims + struct.pack("<BQ", info.dtype, info.offset)


def encode_metadata(metadata: Mapping[str, Any]) -> bytes:
    """``key=value`` lines joined by newlines, UTF-8. Values are strings, numbers or truth values.

    Raises ``MetadataError`` for an empty key, an ``=`` in a key, a newline anywhere, or a value of another type.

    >>> encode_metadata({"group_size": 64, "dims_order": "out,in"})
    b'group_size=64\\ndims_order=out,in'
    """
    lines = []
    for key, value in metadata.items():
        if not isinstance(key, str) or not key or "=" in key or "\n" in key:
            raise MetadataError(f"the key {key!r} is not a string without '=' and newline, of at least one character")
        if not isinstance(value, str | int | float | np.number | np.bool_):
            raise MetadataError(f"the value of {key!r} is a {type(value).__name__}; pass text or a number")
        if "\n" in str(value):
            raise MetadataError(f"the value of {key!r} holds a newline, which ends a line of metadata; replace it")
        lines.append(f"{key}={value}")
    try:
        return "\n".join(lines).encode("utf-8")
    except UnicodeEncodeError as error:
        raise MetadataError(f"metadata must be valid Unicode text: {error}") from error


def encode_tensor(w: np.ndarray, dtype: DType) -> Iterator[memoryview | bytes]:
    """The bytes of one tensor, piece by piece: never more than a small chunk of it in memory at a time.

    w: float32, 2-D for the quantized types. Raises ``QuantizationError`` for weights that the type cannot hold.
    """
    if dtype in (DType.F32, DType.F16):
        flat = np.ascontiguousarray(w).reshape(-1)
        for rows in row_chunks((len(flat), 1)):
            yield memoryview(
                cast_checked(flat[rows], np.float32 if dtype == DType.F32 else np.float16, rows.start)
            ).cast("B")
        return
    bits, groups = (8, 1) if dtype == DType.Q8_PER_CHANNEL else (4, w.shape[1] // GROUP_SIZE)
    scale = absmax_scales(w, groups, bits)  # (out, groups)
    yield scale.astype("<f2").tobytes()
    for rows in row_chunks(w.shape):
        values = quantize_rows(w[rows], scale[rows], bits)
        yield (values if bits == 8 else pack_nibbles(values)).tobytes()


def _encode_chosen(infos: list[TensorInfo[DType]], chosen: Mapping[str, Quantized]) -> dict[str, bytes]:
    """The bytes of tensors whose integers and scales exist already, after a look at whether the format holds them."""
    known, ready = {info.name: info for info in infos}, {}
    for name, (values, scale) in chosen.items():
        if name not in known or known[name].dtype not in (DType.Q8_PER_CHANNEL, DType.Q4_PER_GROUP_64):
            raise SchemeError(f"integers are given for {name!r}, which is no quantized tensor of this file")
        (out, width), eight = known[name].shape, known[name].dtype == DType.Q8_PER_CHANNEL
        wanted = known[name].dtype.scale_shape(known[name].shape)
        q, scale = to_numpy(values, np.int8), to_numpy(scale, np.float16)
        if q.shape != (out, width) or scale.shape != wanted:
            raise SchemeError(
                f"{name!r} takes integers of shape {(out, width)} and scales of shape {wanted}; "
                f"found {q.shape} and {scale.shape}"
            )
        if not np.isfinite(scale).all() or (not eight and q.size and (q.min() < -8 or q.max() > 7)):
            raise QuantizationError(
                f"{name!r}: a scale is not finite, or an integer beyond -8 to 7 is to be stored in 4 bits"
            )
        ready[name] = scale.astype("<f2").tobytes() + (q if eight else pack_nibbles(q)).tobytes()
    return ready


def _with_own_metadata(model: Any, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader needs to rebuild the model from the file alone, then what the caller adds."""
    if not isinstance(metadata, Mapping):
        raise MetadataError(f"metadata must be a dict of keys and values, found {metadata!r}")
    own: dict[str, Any] = {"dims_order": "out,in", "group_size": GROUP_SIZE}
    config = getattr(model, "config", None)
    if hasattr(config, "to_dict"):
        own["architecture"] = type(model).__name__
        for key, value in config.to_dict().items():
            own[f"config.{key}"] = value if isinstance(value, str | int | float) else json.dumps(value, default=str)
    for key in own.keys() & metadata.keys():
        if str(metadata[key]) != str(own[key]):
            raise MetadataError(f"metadata sets {key}={metadata[key]}, and the writer knows it to be {own[key]}")
    return {**own, **metadata}


# ---- reading ---------------------------------------------------------------------------------------------------------


def read_gguf_lite(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Every tensor of a file, dequantized: name -> float32 torch tensor, in the order of the descriptors.

    Raises ``FormatError`` for a malformed file, ``OSError`` for one that cannot be opened.
    """
    import torch

    with open_gguf_lite(path) as file:
        return {name: torch.from_numpy(file.tensor(name)) for name in file.tensors}


def open_gguf_lite(path: str | os.PathLike[str]) -> GGUFLite:
    """Map a file and read its header, metadata and descriptors; the tensors wait until they are asked for."""
    return GGUFLite(path)


class GGUFLite(MappedFile):
    """An open GGUF-lite file. ``metadata`` is a dict of strings, ``tensors`` maps names to ``TensorInfo``.

    Usable in a ``with`` block. ``data_start`` is where the data section begins, in bytes from the start of the file;
    ``spans`` gives each descriptor's own first byte and the one after its last.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, HEADER.size)
        n_tensors, position = self._read_header()
        self.metadata = self._read_metadata(HEADER.size, position)
        self.tensors: dict[str, TensorInfo[DType]] = {}
        self.spans: dict[str, tuple[int, int]] = {}
        for index in range(n_tensors):
            info, end = self._read_descriptor(index, position)
            self.tensors[info.name] = info
            self.spans[info.name] = (position, end)
            position = end
        self.data_start = position
        infos = self.tensors.values()
        self._check_places((t.name[:60], t.offset, t.n_bytes, self.spans[t.name][1] - 8) for t in infos)

    def quantized(self, name: str) -> Quantized:
        """The integers and scales of a quantized tensor: (out, in) int8 and (out,) or (out, in / 64) float16.

        Raises ``SchemeError`` for an F32 or F16 tensor, ``FormatError`` for a scale that is not finite.
        """
        stored, scale = self._stored(name)
        return Quantized(unpack_nibbles(stored) if stored.dtype == np.uint8 else stored, scale)

    def tensor(self, name: str) -> np.ndarray:
        """A tensor dequantized: ``info.shape`` float32, a fresh array."""
        info = self._info(name)
        if info.dtype in (DType.F32, DType.F16):
            kind = "<f4" if info.dtype == DType.F32 else "<f2"
            return np.frombuffer(self.raw(name), kind).reshape(info.shape).astype(np.float32)
        stored, scale = self._stored(name)
        columns = scale if scale.ndim == 2 else scale[:, None]
        w = np.empty(info.shape, np.float32)
        for rows in row_chunks(info.shape):
            values = unpack_nibbles(stored[rows]) if stored.dtype == np.uint8 else stored[rows]
            dequantize_rows(values, columns[rows], out=w[rows])
        return w

    def _stored(self, name: str) -> Quantized:
        """A quantized tensor as it lies in the file, 4-bit values still packed: (out, in / 2) uint8."""
        info, raw = self._info(name), self.raw(name)
        if info.dtype in (DType.F32, DType.F16):
            raise SchemeError(f"{name!r} is stored as {info.dtype.scheme}; it has no integers and no scales")
        out, width = info.shape
        per_group = info.dtype == DType.Q4_PER_GROUP_64
        shape, split = info.dtype.scale_shape(info.shape), info.dtype.scale_bytes(info.shape)
        scale = np.frombuffer(raw[:split], "<f2").reshape(shape)
        if not np.isfinite(scale).all():
            at = int(np.argmin(np.isfinite(scale)))
            where = self.data_start + info.offset + 2 * at
            raise self._error(f"scale {at} is {scale.flat[at]}; scales are finite", f"tensor {name!r}: scales", where)
        values = raw[split:].reshape(out, width // 2) if per_group else raw[split:].reshape(out, width).view(np.int8)
        return Quantized(values, scale)

    # -- the parts of the format, in their order

    def _read_header(self) -> tuple[int, int]:
        magic, version, n_tensors, metadata_len = HEADER.unpack_from(self._data, 0)
        if magic != MAGIC:
            found = bytes(self._data[:4])
            hint = {b"GGUF": "; this is a real GGUF file", b"GLFT": "; this one is big-endian"}.get(found, "")
            raise self._error(f"found {found!r}, a GGUF-lite file begins with b'TFLG'{hint}", "header.magic", 0)
        if version != VERSION:
            raise self._error(f"found version {version}, this reader knows version {VERSION}", "header.version", 4)
        end = HEADER.size + metadata_len
        if end > self.n_bytes:
            left = self.n_bytes - HEADER.size
            raise self._error(f"found {metadata_len}, and {left} bytes follow the header", "header.metadata_len", 12)
        if n_tensors * SMALLEST_DESCRIPTOR > self.n_bytes - end:
            raise self._error(
                f"found {n_tensors}, and the {self.n_bytes - end} bytes after the metadata hold "
                f"{(self.n_bytes - end) // SMALLEST_DESCRIPTOR} descriptors at most",
                "header.n_tensors",
                8,
            )
        return n_tensors, end

    def _read_metadata(self, start: int, end: int) -> dict[str, str]:
        text = self._text(start, end, "metadata")
        metadata: dict[str, str] = {}
        at = start
        for line in text.removesuffix("\n").split("\n") if text else []:
            key, equals, value = line.partition("=")
            if not equals or not key:
                raise self._error(f"the line {line[:60]!r} is not key=value", "metadata", at)
            if key in metadata:
                raise self._error(f"the key {key[:60]!r} stands twice", "metadata", at)
            metadata[key] = value
            at += len(line.encode()) + 1
        return metadata

    def _read_descriptor(self, index: int, start: int) -> tuple[TensorInfo[DType], int]:
        part = f"descriptor {index}"
        (name_len,), at = self._take("<H", start, f"{part}: name_len")
        if name_len == 0:
            raise self._error("a name has at least one byte", f"{part}: name_len", start)
        self._need(at, name_len, f"{part}: name")
        name = self._text(at, at + name_len, f"{part}: name")
        if name in self.tensors:
            raise self._error(f"the name {name[:60]!r} stands twice; names are unique", f"{part}: name", at)
        part = f"tensor {name[:60]!r}"
        at += name_len
        (n_dims,), at = self._take("<B", at, f"{part}: n_dims")
        if n_dims > MAX_DIMS:
            raise self._error(f"found {n_dims} dims, an array has {MAX_DIMS} at most", f"{part}: n_dims", at - 1)
        dims_at = at
        dims, at = self._take(f"<{n_dims}I", at, f"{part}: dims")
        if n_cells(dims) >= MAX_CELLS:
            raise self._error(f"the dims {dims} multiply to more than any file holds", f"{part}: dims", dims_at)
        (code,), at = self._take("<B", at, f"{part}: dtype")
        if code >= len(DType):
            known = ", ".join(f"{d.value} {d.name}" for d in DType)
            raise self._error(f"found {code}; the types are {known}", f"{part}: dtype", at - 1)
        dtype = DType(code)
        if dtype >= DType.Q8_PER_CHANNEL and n_dims != 2:
            raise self._error(f"{dtype.name} is for 2 dims, found {dims}", f"{part}: n_dims", dims_at - 1)
        if dtype == DType.Q4_PER_GROUP_64 and dims[1] % GROUP_SIZE:
            raise self._error(f"{dtype.name} needs rows of a multiple of 64, found {dims}", f"{part}: dims", dims_at)
        (offset,), at = self._take("<Q", at, f"{part}: offset")
        return TensorInfo(name, dims, dtype, offset), at
