"""Read APR; ``types`` has the layout."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.errors import FormatError
from ...core.reading import Source
from ..file import TensorFile
from ..json_places import members
from ..tensor import TensorInfo
from .types import APR_VERSION, AprType


def open_apr(source: Source) -> AprFile:
    """Open an APR file, by its path or as bytes. Raises ``FormatError`` for a malformed one."""
    return AprFile(source)


class AprFile(TensorFile[AprType]):
    """An open APR file. A tensor's ``offset`` counts from the file's start, and its ``length`` is that of its list."""

    data_start = 0
    version = APR_VERSION

    def __init__(self, source: Source) -> None:
        super().__init__(source, 2)
        text = self._text(0, self.n_bytes, "file")
        try:
            found = json.loads(text)
            if found["version"] != APR_VERSION:
                raise self._error(f"found {found['version']!r}, expected {APR_VERSION}", "version", 0)
            self.metadata = dict(found["metadata"])
            self._arrays = {name: _array(tensor) for name, tensor in found["tensors"].items()}
        except FormatError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            message = f"this is no APR file: {type(error).__name__}: {error}"
            raise FormatError(message, path=self.path) from None
        self.tensors = {}
        byte, before = 0, 0
        for name, start, end in _lists(text):
            byte += len(text[before:start].encode("utf-8"))
            self.tensors[name] = TensorInfo(name, self._arrays[name].shape, AprType.F32, byte, end - start)
            before = start

    @property
    def architecture(self) -> str:
        """The metadata's, or unknown."""
        return str(self.metadata.get("architecture", "unknown"))

    def tensor(self, name: str) -> np.ndarray:
        """A tensor in its shape, float32, a fresh array."""
        self._info(name)
        return self._arrays[name].copy()


def _array(tensor: dict[str, Any]) -> np.ndarray:
    return np.array(tensor["data"], np.float32).reshape([int(dim) for dim in tensor["shape"]])


def _lists(text: str) -> Iterator[tuple[str, int, int]]:
    """Where the list of each tensor begins and ends in the text; of a key that comes twice, the last."""
    places = {}
    for part in members(text, 0):
        if part.key == "tensors":
            places = {
                tensor.key: next(place for place in reversed(list(members(text, tensor.start))) if place.key == "data")
                for tensor in members(text, part.start)
            }
    for name, place in sorted(places.items(), key=lambda item: item[1].start):
        yield name, place.start, place.end
