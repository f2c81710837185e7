"""Read GGUF-lite; ``types`` has the layout.

A reader goes by the offsets and believes nothing: each count and length is checked against the size of the file
before anything is read or allocated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.arrays import row_chunks
from ...core.errors import SchemeError
from ...core.reading import Source
from ...quantization.packing import unpack_nibbles
from ...quantization.schemes import GROUP_SIZE
from ...quantization.symmetric import Quantized, dequantize_rows
from ..file import TensorFile
from ..tensor import TensorInfo
from .types import HEADER, MAGIC, MAX_CELLS, MAX_DIMS, MUST_SAY, SMALLEST_DESCRIPTOR, VERSION, DType, n_cells

if TYPE_CHECKING:
    from torch import Tensor


def read_gguf_lite(source: Source) -> dict[str, Tensor]:
    """Every tensor of a file, dequantized: name -> float32 torch tensor, in the order of the descriptors.

    Raises ``FormatError`` for a malformed file, ``OSError`` for one that cannot be opened.
    """
    import torch

    with open_gguf_lite(source) as file:
        return {name: torch.from_numpy(file.tensor(name)) for name in file.tensors}


def open_gguf_lite(source: Source) -> GGUFLite:
    """Open a file, by its path or as bytes, and read its descriptors; the tensors wait until they are asked for."""
    return GGUFLite(source)


class GGUFLite(TensorFile[DType]):
    """An open GGUF-lite file. ``metadata`` is a dict of strings, ``tensors`` maps names to ``TensorInfo``.

    Usable in a ``with`` block. ``data_start`` is where the data section begins, in bytes from the start of the file;
    ``spans`` gives each descriptor's own first byte and the one after its last.
    """

    version = VERSION

    def __init__(self, source: Source) -> None:
        super().__init__(source, HEADER.size)
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

    @property
    def architecture(self) -> str:
        """The name of the model's class, or unknown."""
        return str(self.metadata.get("architecture", "unknown"))

    def entry_place(self, name: str) -> tuple[int, int] | None:
        """A tensor's descriptor."""
        return self.spans[name]

    def key_place(self, key: str) -> tuple[int, int] | None:
        """A line of the metadata."""
        return self._lines[key]

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
        magic, version, n_tensors, metadata_len = HEADER.unpack(self._bytes(0, HEADER.size))
        if magic != MAGIC:
            found = self.read(0, 4)
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
        self._lines: dict[str, tuple[int, int]] = {}
        at = start
        for line in text.removesuffix("\n").split("\n") if text else []:
            key, equals, value = line.partition("=")
            if not equals or not key:
                raise self._error(f"the line {line[:60]!r} is not key=value", "metadata", at)
            if key in metadata:
                raise self._error(f"the key {key[:60]!r} stands twice", "metadata", at)
            if value != MUST_SAY.get(key, value):
                wanted = f"this reader knows {key}={MUST_SAY[key]} only; write the file again so"
                raise self._error(f"found {key}={value[:60]!r}, and {wanted}", "metadata", at)
            metadata[key] = value
            self._lines[key] = (at, min(at + len(line.encode()) + 1, end))
            at = self._lines[key][1]
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
