"""A GGUF file of any architecture, quantized into another one as llama.cpp's quantizer does it.

The file need not describe a model that this library knows: the rules go by the names of tensors, a few keys and the
shapes. Tensors are read, decoded, encoded and written a few rows at a time, so memory does not grow with the model.

Source: ``llama_model_quantize_impl`` in ``llama.cpp/src/llama-quant.cpp``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ..core.errors import SchemeError
from ..formats.gguf.codecs import CODECS, decode
from ..formats.gguf.imatrix import read_imatrix
from ..formats.gguf.metadata import Typed, ValueType
from ..formats.gguf.read import GGUFFile, read_gguf
from ..formats.gguf.types import GGMLType
from ..formats.gguf.write import LazyTensor, RawTensor, weighed, write_gguf
from .file_types import QUANTIZATION_VERSION, FileType, place, preset
from .progress import Advance, counter, nobody

_SPLIT = ("split.no", "split.count", "split.tensors.count")


class Requantized(NamedTuple):
    """What became of a file: the type of every tensor before and after, and whose columns were weighed."""

    before: dict[str, GGMLType]
    after: dict[str, GGMLType]
    weighed: frozenset[str] = frozenset()

    @property
    def twice(self) -> list[str]:
        """The tensors that were quantized before and are now in another type: they were rounded twice."""
        return [name for name in self.changed if self.before[name].quantized]

    @property
    def changed(self) -> list[str]:
        """The tensors that are now in another type."""
        return [name for name, kind in self.before.items() if self.after[name] != kind]


def quantize_gguf(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    kind: GGMLType | str | FileType,
    requantize: bool = False,
    advance: Advance = nobody,
    imatrix: str | os.PathLike[str] | None = None,
) -> Requantized:
    """Write the model of one GGUF file to another; ``kind`` is one of ``PRESETS``, with the mixes of llama.cpp.

    ``PRESETS["Q4_K_M"].choosing({name: type})`` is such a mix with another type for single tensors.

    Every key is kept except file type and quantization version. ``advance(done, total, tensor)`` hears of each
    piece, in weights. ``imatrix``: a file that says how much each column of each matrix counts; a matrix that it
    does not have is quantized as without it, and llama.cpp gives a few matrices another type where there is one.

    Raises ``SchemeError`` for an unknown type, for a tensor that is quantized already and would be rounded again
    (``requantize`` allows it), for a part of a split file, and whatever ``read_gguf``, ``read_imatrix`` and
    ``write_gguf`` raise; ``QuantizationError`` for an importance matrix of another model. Nothing is written then.
    """
    chosen, matrix = preset(kind), None if imatrix is None else read_imatrix(imatrix)
    with read_gguf(source) as file:
        if int(file.metadata.get("split.count", 1)) > 1:
            raise SchemeError(f"{file.path} is one part of a split file; join the parts with llama-gguf-split --merge")
        before = {name: file.tensors[name].dtype for name in sorted(file.tensors, key=place)}
        shapes = {name: file.tensors[name].shape for name in before}
        after = before | chosen.types_of(shapes, file.metadata, matrix is not None)
        found = Requantized(before, after)
        _check(found, requantize)
        counts = {} if matrix is None else matrix.importances({name: shapes[name] for name in found.changed})
        found = found._replace(weighed=frozenset(name for name in counts if CODECS[after[name]].weighs))
        count = counter((shapes[name] for name in found.changed), advance)
        tensors = {
            name: RawTensor(file.raw(name), before[name], shapes[name])
            if after[name] == before[name]
            else weighed(_lazily(file, name, count), after[name], counts.get(name))
            for name in before
        }
        about = {} if matrix is None or imatrix is None else matrix.keys(imatrix)
        write_gguf(target, tensors, _metadata(file, chosen, about), file.alignment)
    return found


def _metadata(file: GGUFFile, chosen: FileType, about: Mapping[str, Typed]) -> dict[str, Typed]:
    """The keys in their order, then version and type of this file, in the order that llama.cpp gives them."""
    new = {
        "general.quantization_version": Typed(QUANTIZATION_VERSION, ValueType.UINT32),
        "general.file_type": Typed(chosen.number, ValueType.UINT32),
        **about,
    }
    return {key: value for key, value in file.typed().items() if key not in (*new, *_SPLIT)} | new


def _check(found: Requantized, requantize: bool) -> None:
    for name, kind in found.before.items():
        if found.after[name] != kind and kind not in CODECS:
            raise SchemeError(f"{name!r} is {kind.name}, which cannot be decoded here; quantize the original file")
    if found.twice and not requantize:
        name = found.twice[0]
        raise SchemeError(
            f"{name!r} is {found.before[name].name} already, as are {len(found.twice) - 1} more that would change; "
            "quantizing again adds a second rounding error to the first, so quantize the original F32, F16 or BF16 "
            "file, or allow it with requantize (--requantize)"
        )


def _lazily(file: GGUFFile, name: str, count: Callable[[int, str], None]) -> LazyTensor:
    """The weights of a tensor as float32, decoded when they are written; ``count`` hears of every piece."""
    info, raw = file.tensors[name], file.raw(name)
    by_row = raw.reshape(-1, info.dtype.bytes_of(info.shape[-1:]))

    def rows(start: int, stop: int) -> np.ndarray:
        w = decode(by_row[start:stop], info.dtype)
        count(w.size, name)
        return w

    return LazyTensor(info.shape, "float32", rows)
