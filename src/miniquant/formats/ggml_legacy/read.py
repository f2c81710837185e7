"""Read legacy GGML; ``types`` has the layout."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from ...core.reading import Source
from ..file import TensorFile
from ..tensor import TensorInfo
from .types import HPARAMS, MAGIC, LegacyType


class GGMLFile(NamedTuple):
    """What a reader found: numbers by name, tokens as bytes, tensors by name."""

    hparams: dict[str, int]
    vocabulary: list[bytes]
    tensors: dict[str, np.ndarray]


def read_ggml(data: bytes) -> GGMLFile:
    """Read a file the way a program of that time did: by position, believing what it says.

    Raises ``FormatError`` only where it cannot go on: another magic, an impossible length, a type it does not know.
    """
    with open_ggml(data) as file:
        return GGMLFile(file.hparams, file.vocabulary, {name: file.stored(name) for name in file.tensors})


def open_ggml(source: Source) -> LegacyFile:
    """Open a legacy GGML file, by its path or as bytes. Errors as in ``read_ggml``."""
    return LegacyFile(source)


class LegacyFile(TensorFile[LegacyType]):
    """An open legacy GGML file. The tensors' offsets count from the file's start; ``metadata`` is ``hparams``."""

    data_start = 0

    def __init__(self, source: Source) -> None:
        super().__init__(source, 4)
        self._at = 0
        (magic,) = self._numbers("<I", "magic")
        if magic != MAGIC:
            raise self._error(f"found 0x{magic:08x}, expected 0x{MAGIC:08x}", "magic", 0)
        self.hparams: dict[str, int] = dict(zip(HPARAMS, self._numbers(f"<{len(HPARAMS)}i", "hyperparameters")))
        self.metadata = dict(self.hparams)
        (count,) = self._numbers("<i", "number of tokens")
        self.vocabulary = [self._token(index) for index in range(count)]
        self.tensors = {}
        while self._at < self.n_bytes:
            info = self._read_info()
            self.tensors[info.name] = info

    def stored(self, name: str) -> np.ndarray:
        """A tensor as it is stored: ``info.shape``, float32 or float16, read-only."""
        info = self._info(name)
        stored: np.ndarray = self.raw(name).view(info.dtype.numpy).reshape(info.shape)
        return stored

    def tensor(self, name: str) -> np.ndarray:
        """A tensor in its shape, float32, a fresh array."""
        return self.stored(name).astype(np.float32)

    def _token(self, index: int) -> bytes:
        (length,) = self._numbers("<i", f"token {index}: length")
        start = self._step(length, f"token {index}")
        return self.read(start, start + length)

    def _read_info(self) -> TensorInfo[LegacyType]:
        n_dims, length, code = self._numbers("<3i", "tensor header")
        if code not in LegacyType._value2member_map_ or not 0 <= n_dims <= 4:
            message = f"{n_dims} dims of type {code}; known are types 0 and 1"
            raise self._error(message, "tensor header", self._at - 12)
        shape = self._numbers(f"<{n_dims}i", "dims")[::-1]
        start = self._step(length, "tensor name")
        name = self.read(start, start + length).decode("utf-8", "replace")
        dtype = LegacyType(code)
        return TensorInfo(name, shape, dtype, self._step(dtype.bytes_of(shape), f"tensor {name!r}"))

    def _numbers(self, form: str, field: str) -> tuple[Any, ...]:
        start = self._step(struct.calcsize(form), field)
        return struct.unpack(form, self._bytes(start, self._at))

    def _step(self, size: int, field: str) -> int:
        """Where the next ``size`` bytes begin, after a look at whether the file has them."""
        if not 0 <= size <= self.n_bytes - self._at:
            raise self._error(f"{size} bytes are wanted, {self.n_bytes - self._at} are left", field, self._at)
        self._at += size
        return self._at - size
