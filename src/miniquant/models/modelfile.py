"""GGUF-lite, GGUF or bump, whichever a file is: opened by its magic, described in one form, rebuilt into a MiniGPT."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import FormatError, MiniquantError
from ..core.reading import open_regular
from ..formats.bump import BumpFile, open_bump
from ..formats.gguf_lite.file import GGUFLite, open_gguf_lite

if TYPE_CHECKING:
    from ..formats.gguf import GGUFFile
    from .minigpt import MiniGPT


@dataclass(frozen=True)
class TensorRow:
    """One tensor of any format: ``shape`` in PyTorch's order, ``offset`` from the start of the file, in bytes."""

    name: str
    type: str
    shape: tuple[int, ...]
    offset: int
    n_bytes: int


@dataclass(frozen=True)
class Description:
    """What a file says about itself; ``overhead`` is every byte that is not a tensor's."""

    format: str
    version: int
    architecture: str
    alignment: int
    n_bytes: int
    metadata: dict[str, Any]
    tensors: list[TensorRow]

    @property
    def overhead(self) -> int:
        """Header, metadata, tensor infos and padding, in bytes."""
        return self.n_bytes - sum(row.n_bytes for row in self.tensors)

    def by_type(self) -> dict[str, tuple[int, int]]:
        """type -> (tensors, bytes), the largest first."""
        found: dict[str, tuple[int, int]] = {}
        for row in self.tensors:
            count, size = found.get(row.type, (0, 0))
            found[row.type] = (count + 1, size + row.n_bytes)
        return dict(sorted(found.items(), key=lambda item: -item[1][1]))


def open_any(path: str | os.PathLike[str]) -> GGUFLite | GGUFFile | BumpFile:
    """Open a GGUF-lite, GGUF or bump file by its first four bytes.

    Raises ``FormatError`` for a malformed file or another format, ``OSError`` for one that cannot be opened.
    """
    with open_regular(path) as file:
        magic = file.read(4)
    if magic == b"TFLG":
        return open_gguf_lite(path)
    if magic == b"GGUF":
        from ..formats.gguf import read_gguf

        return read_gguf(path)
    if magic == b"BUMP":
        return open_bump(path)
    raise FormatError(
        f"found {magic!r}; a GGUF file begins with b'GGUF', a GGUF-lite file with b'TFLG', a bump file with b'BUMP'",
        path=path,
        field="header.magic",
        offset=0,
    )


def describe(path: str | os.PathLike[str]) -> Description:
    """Read a file's header, metadata and tensor infos; no tensor is touched."""
    with open_any(path) as file:
        if isinstance(file, GGUFLite):
            rows = [
                TensorRow(i.name, i.dtype.name, i.shape, file.data_start + i.offset, i.n_bytes) for i in _infos(file)
            ]
            architecture = file.metadata.get("architecture", "unknown")
            return Description("gguf-lite", 1, architecture, 1, file.n_bytes, dict(file.metadata), rows)
        if isinstance(file, BumpFile):
            rows = [TensorRow(i.name, i.dtype.name, i.shape, i.offset, i.n_bytes) for i in _infos(file)]
            metadata = {key: value for key, value in file.config._asdict().items() if value is not None}
            return Description("bump", 3, file.config.architecture, 64, file.n_bytes, metadata, rows)
        rows = [TensorRow(i.name, i.dtype.name, i.shape, file.data_start + i.offset, i.n_bytes) for i in _infos(file)]
        architecture = str(file.metadata.get("general.architecture", "unknown"))
        metadata = {key: plain(value) for key, value in file.metadata.items()}
        return Description("gguf", file.version, architecture, file.alignment, file.n_bytes, metadata, rows)


def _infos(file: GGUFLite | GGUFFile | BumpFile) -> list[Any]:
    return list(file.tensors.values())


def plain(value: Any, limit: int = 8) -> Any:
    """A metadata value for people: numbers and text as they are, a long array as its beginning and its length.

    >>> plain(np.arange(3)), plain(list("abcdefghij"))
    ([0, 1, 2], ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', '… 10 in all'])
    """
    if isinstance(value, str | int | float):
        return value
    items = value[:limit]
    items = items.tolist() if isinstance(items, np.ndarray) else list(items)
    return items if len(value) <= limit else [*items, f"… {len(value)} in all"]


def load_any(path: str | os.PathLike[str]) -> MiniGPT:
    """Rebuild a MiniGPT from a GGUF-lite, GGUF or bump file, in evaluation mode.

    Raises ``FormatError`` for a malformed file, ``MiniquantError`` if its tensors do not make up a MiniGPT.
    """
    with open_any(path) as file:
        if isinstance(file, GGUFLite):
            from .pretrained import load_gguf_lite

            return load_gguf_lite(path)
        if isinstance(file, BumpFile):
            from .from_bump import minigpt_from_bump

            return minigpt_from_bump(file)
        from .to_gguf import minigpt_from_gguf

        return minigpt_from_gguf(file)


def weights_of(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Every tensor of a file, decoded: name -> float32. A MiniGPT's names are llama.cpp's in every format."""
    from .to_gguf import gguf_name

    with open_any(path) as file:
        if isinstance(file, BumpFile):
            from .from_bump import gguf_tensors

            return gguf_tensors(file)
        found = {}
        for name in file.tensors:
            try:
                known = gguf_name(name)
            except MiniquantError:
                known = name
            found[known] = file.tensor(name)
        return found
