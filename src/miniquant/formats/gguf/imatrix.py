"""llama.cpp's importance matrix as a GGUF file: how much an error in each column of each matrix counts.

The file is an ordinary GGUF file without weights. For a matrix NAME it holds two tensors: ``NAME.in_sum2``, for each
column the sum of the squares of all numbers that met it on some text, and ``NAME.counts``, how many there were. The
mean square is the importance of the column. A matrix of experts has a row of both for each expert.

Source: ``save_imatrix`` in ``llama.cpp/tools/imatrix/imatrix.cpp`` and ``load_imatrix`` in
``llama.cpp/tools/quantize/quantize.cpp``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...core.errors import FormatError, QuantizationError
from .metadata import Typed, ValueType
from .read import GGUFFile, read_gguf
from .types import GGMLType
from .write import write_gguf

SUMS, COUNTS = ".in_sum2", ".counts"
_DATASETS, _CHUNK_COUNT, _CHUNK_SIZE = (f"imatrix.{key}" for key in ("datasets", "chunk_count", "chunk_size"))


class Squares(NamedTuple):
    """What one matrix has met.   sums: (experts, in) float32, counts: (experts,) float32; one expert if it has none."""

    sums: np.ndarray
    counts: np.ndarray

    def means(self) -> np.ndarray:
        """The importance of each column: (experts, in) float32. Columns of an expert that met nothing count as 1."""
        counts = self.counts[:, None]
        return np.where(counts > 0, self.sums / np.where(counts > 0, counts, np.float32(1)), np.float32(1))


class ImportanceMatrix(NamedTuple):
    """What all matrices of a model have met, by llama.cpp's names, and on which text."""

    squares: dict[str, Squares]
    datasets: tuple[str, ...]  # the names of the texts
    chunk_count: int
    chunk_size: int  # tokens

    def importance(self, name: str, shape: tuple[int, ...]) -> np.ndarray | None:
        """That of a matrix, for ``encode``: (experts, in) float32; ``None`` for one that is not in the file.

        Raises ``QuantizationError`` if the file's matrix of that name has other columns than ``shape``.

        >>> squares = Squares(np.array([[8.0, 2.0]], np.float32), np.array([2.0], np.float32))
        >>> ImportanceMatrix({"up": squares}, ("a.txt",), 1, 2).importance("up", (3, 2))
        array([[4., 1.]], dtype=float32)
        """
        if name not in self.squares:
            return None
        found, experts = self.squares[name].means(), shape[0] if len(shape) == 3 else 1
        if found.shape != (experts, shape[-1]):
            raise QuantizationError(
                f"the importance matrix has {_size(*found.shape)} for {name!r}, and the matrix has "
                f"{_size(experts, shape[-1])}: it was made for another model; make one with miniquant imatrix"
            )
        return found

    def importances(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
        """That of each matrix that is in the file, as ``importance`` gives it.

        llama.cpp takes no notice of one of the token embedding that does not fit, so it is left out here as well.
        Raises ``QuantizationError`` as ``importance`` does, and if the file has none of these matrices.
        """
        found = {}
        for name, shape in shapes.items():
            try:
                importance = self.importance(name, shape)
            except QuantizationError:
                if name != "token_embd.weight":
                    raise
                continue
            if importance is not None:
                found[name] = importance
        if shapes and not found:
            raise QuantizationError(
                f"the importance matrix has none of the model's matrices: it has {min(self.squares)!r:.60}, the model "
                f"{min(shapes)!r:.60}; it was made for another model, make one with miniquant imatrix"
            )
        return found

    def keys(self, path: str | os.PathLike[str]) -> dict[str, Typed]:
        """What llama.cpp's quantizer writes about it into the quantized file; ``path`` is where it was read from."""
        texts = {"file": os.fspath(path)} | ({"dataset": self.datasets[0]} if self.datasets else {})
        counts = {"entries_count": len(self.squares)} | ({"chunks_count": self.chunk_count} if self.chunk_count else {})
        return {f"quantize.imatrix.{key}": Typed(_cut(text), ValueType.STRING) for key, text in texts.items()} | {
            f"quantize.imatrix.{key}": Typed(count, ValueType.UINT32) for key, count in counts.items()
        }


def _cut(text: str) -> str:
    """llama.cpp keeps 127 bytes of it."""
    return text.encode("utf-8", "replace")[:127].decode("utf-8", "ignore")


def _size(experts: int, columns: int) -> str:
    return f"{columns} columns" if experts == 1 else f"{experts} experts of {columns} columns"


def write_imatrix(path: str | os.PathLike[str], matrix: ImportanceMatrix) -> None:
    """Write an importance matrix as ``llama-imatrix`` does, the matrices in the order of their names."""
    metadata = {
        "general.type": "imatrix",
        _DATASETS: Typed(list(matrix.datasets), ValueType.ARRAY, ValueType.STRING),
        _CHUNK_COUNT: Typed(matrix.chunk_count, ValueType.UINT32),
        _CHUNK_SIZE: Typed(matrix.chunk_size, ValueType.UINT32),
    }
    tensors = {}
    for name, (sums, counts) in sorted(matrix.squares.items()):
        one = len(counts) == 1  # ggml writes no outer dim of 1
        tensors[name + SUMS] = np.asarray(sums[0] if one else sums, np.float32)
        tensors[name + COUNTS] = np.asarray(counts if one else counts[:, None], np.float32)
    write_gguf(path, tensors, metadata)


def read_imatrix(path: str | os.PathLike[str]) -> ImportanceMatrix:
    """Read an importance matrix; tensors of other names, such as llama.cpp's statistics, are left aside.

    Raises ``FormatError`` for a file that is none, or in which a sum or a count is missing or no number from 0 on.
    """
    with read_gguf(path) as file:
        datasets, count, size = _about(file)
        names = [name.removesuffix(SUMS) for name in file.tensors if name.endswith(SUMS)]
        lonely = [name for name in file.tensors if name.endswith(COUNTS) and name.removesuffix(COUNTS) not in names]
        if lonely or not names:
            found = f"{lonely[0]!r} has no {lonely[0].removesuffix(COUNTS) + SUMS!r}" if lonely else "it holds no sums"
            raise FormatError(f"{file.path}: {found}; the importance matrix is not whole, make it again")
        squares = {name: _squares(file, name) for name in names}
    return ImportanceMatrix(squares, datasets, count, size)


def _about(file: GGUFFile) -> tuple[tuple[str, ...], int, int]:
    kind = file.metadata.get("general.type")
    if kind != "imatrix":
        architecture = file.metadata.get("general.architecture")
        what = f"holds a model ({architecture!r:.40})" if architecture else f"says general.type = {kind!r:.40}"
        raise FormatError(
            f"{file.path} is no importance matrix: it {what}, and one says general.type = 'imatrix'; "
            "miniquant imatrix MODEL --text FILE -o imatrix.gguf makes one"
        )
    datasets = file.metadata.get(_DATASETS)
    if not isinstance(datasets, Sequence) or isinstance(datasets, str) or not all(map(_is_text, datasets)):
        raise FormatError(f"{file.path}: {_DATASETS} is {datasets!r:.40}, expected the names of the texts")
    return tuple(datasets), _number(file, _CHUNK_COUNT), _number(file, _CHUNK_SIZE)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _number(file: GGUFFile, key: str) -> int:
    value = file.metadata.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise FormatError(f"{file.path}: {key} is {value!r:.40}, expected a number; llama.cpp refuses it as well")
    return value


def _squares(file: GGUFFile, name: str) -> Squares:
    if name + COUNTS not in file.tensors:
        raise FormatError(f"{file.path}: {name + SUMS!r} has no {name + COUNTS!r}; make the importance matrix again")
    infos = [file.tensors[name + end] for end in (SUMS, COUNTS)]
    if any(info.dtype != GGMLType.F32 or not 1 <= len(info.shape) <= 2 for info in infos):
        said = ", ".join(f"{info.name!r} is {info.dtype.name} of shape {info.shape}" for info in infos)
        raise FormatError(f"{file.path}: {said}; expected F32 with one or two dims")
    sums = file.tensor(name + SUMS).reshape(-1, infos[0].shape[-1])
    counts = file.tensor(name + COUNTS).reshape(-1)
    if len(sums) != len(counts):
        raise FormatError(f"{file.path}: {name!r} has {len(sums)} rows of sums and {len(counts)} counts; expected one")
    for end, numbers in ((SUMS, sums), (COUNTS, counts)):
        wrong = numbers[~(np.isfinite(numbers) & (numbers >= 0))]
        if wrong.size:
            raise FormatError(f"{file.path}: {name + end!r} holds {wrong[0]:g}; expected finite numbers from 0 on")
    return Squares(sums, counts)
