"""An open file of any format: what every reader offers under the same names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic

import numpy as np

from ..core.reading import MappedFile, Source
from .tensor import TensorInfo, Type

Beside = Mapping[str, Source]  # files that lie beside a file, by their names; for a path, the folder has them


class TensorFile(MappedFile, ABC, Generic[Type]):
    """An open file, usable in a ``with`` block: ``metadata``, and ``tensors``, which maps names to ``TensorInfo``.

    ``data_start`` is the byte of the file from which the tensors' offsets count, ``alignment`` what their places are
    multiples of, in bytes.
    """

    metadata: dict[str, Any]
    tensors: dict[str, TensorInfo[Type]]
    alignment: int = 1
    version: int | None = None  # of the format, where a file says it

    @property
    def architecture(self) -> str:
        """What kind of model the file says it holds."""
        return "unknown"

    def entry_place(self, name: str) -> tuple[int, int] | None:
        """Where the file says what a tensor is: the first byte and the one after the last, if that is in the file."""
        return None

    def key_place(self, key: str) -> tuple[int, int] | None:
        """Where a key of the metadata stands with its value, if that is in the file."""
        return None

    @abstractmethod
    def tensor(self, name: str) -> np.ndarray:
        """A tensor decoded: ``info.shape``, float32, a fresh array."""
