"""What a file of any format says about itself, in one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.reading import Source
from .file import Beside
from .registry import format_of
from .tensor import TensorInfo


@dataclass(frozen=True)
class Description:
    """What a file says about itself; ``overhead`` is every byte that is not a tensor's."""

    format: str
    version: int | None
    architecture: str
    alignment: int
    n_bytes: int
    metadata: dict[str, Any]
    data_start: int
    tensors: list[TensorInfo[Any]]

    @property
    def overhead(self) -> int:
        """Header, metadata, tensor infos and padding, in bytes."""
        return self.n_bytes - sum(info.n_bytes for info in self.tensors)

    def start(self, info: TensorInfo[Any]) -> int:
        """The byte of the file at which a tensor begins."""
        return self.data_start + info.offset

    def by_type(self) -> dict[str, tuple[int, int]]:
        """type -> (tensors, bytes), the largest first."""
        found: dict[str, tuple[int, int]] = {}
        for info in self.tensors:
            count, size = found.get(info.dtype.name, (0, 0))
            found[info.dtype.name] = (count + 1, size + info.n_bytes)
        return dict(sorted(found.items(), key=lambda item: -item[1][1]))


def describe(source: Source, beside: Beside | None = None) -> Description:
    """Read a file's header, metadata and tensor infos; no tensor is touched. As ``open_any`` otherwise."""
    format = format_of(source)
    with format.open(source, beside or {}) as file:
        metadata = {key: plain(value) for key, value in file.metadata.items()}
        about = (format.name, file.version, file.architecture, file.alignment, file.n_bytes)
        return Description(*about, metadata, file.data_start, list(file.tensors.values()))


def plain(value: Any, limit: int = 8) -> Any:
    """A metadata value for people: numbers and text as they are, a long array as its beginning and its length.

    >>> plain(np.arange(3)), plain(list("abcdefghij"))
    ([0, 1, 2], ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', '… 10 in all'])
    """
    if value is None or isinstance(value, str | int | float | dict):
        return value
    items = value[:limit]
    items = items.tolist() if isinstance(items, np.ndarray) else list(items)
    return items if len(value) <= limit else [*items, f"… {len(value)} in all"]
