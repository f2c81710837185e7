"""Exporters to attack: the document's, six with a planted bug each, and one with another alignment."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import WriteError
from ...formats.gguf import GGMLType, Typed, ValueType
from ...models.export import Exporter, ExportFormat, ExportResult, GGUFQuantization, ModelWeights
from .pipeline import InMemory, Shapes


class InsertionOrder(InMemory):
    """Tensors are written as they come."""

    def order(self, names: Iterable[str]) -> list[str]:
        """The order of the dict."""
        return list(names)


class OneKeyTooMany(InMemory):
    """The header counts one key that is not there."""

    def key_count(self, n_keys: int) -> int:
        """One more."""
        return n_keys + 1


class OffsetsWithoutPadding(InMemory):
    """The data are padded, and the offsets do not count the padding."""

    def room(self, n_bytes: int) -> int:
        """The data alone."""
        return n_bytes


class DimsAsGiven(InMemory):
    """The dims are in the file as numpy has them, not reversed."""

    def dims(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Unchanged."""
        return shape


class LyingCard(InMemory):
    """The card states the size of the tensors as the size of the file: the header is left out."""

    def stated_size(self, file: bytes, data: int) -> int:
        """The tensors alone."""
        return data


class DocumentsQ4(InMemory):
    """Q4_0 as the document describes it: scale absmax / 7, two's complement, neighbours share a byte."""

    def encode(self, data: np.ndarray, quantization: GGUFQuantization) -> bytes:
        """Blocks of 18 bytes, as many as ggml's."""
        if quantization != GGUFQuantization.Q4_0:
            return super().encode(data, quantization)
        flat = np.ravel(data)
        w = np.pad(flat, (0, -flat.size % 32)).reshape(-1, 32)
        scale = np.abs(w).max(axis=1, keepdims=True) / 7
        q = np.round(w / np.where(scale == 0, 1, scale)).astype(np.int8).view(np.uint8) & 15
        return np.hstack([scale.astype("<f2").view(np.uint8), q[:, 0::2] | q[:, 1::2] << 4]).tobytes()


BUGS = (InsertionOrder, OneKeyTooMany, OffsetsWithoutPadding, DimsAsGiven, LyingCard, DocumentsQ4)


# ---- the document's exporter -----------------------------------------------------------------------------------------


class MakesFoldersFirst(Exporter):
    """It makes the folder of the file, and only then looks at the format: ``exporter.rs``, ``Exporter::export``."""

    def export(self, weights: ModelWeights, format: ExportFormat, filename: str) -> ExportResult:
        """Raises ``WriteError`` where the folder cannot be made."""
        try:
            Path(self.output_dir).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError("cannot make the output folder") from error
        return super().export(weights, format, filename)


class DocumentsExporter(DocumentsQ4):
    """The document's exporter of GGUF files, rebuilt from its text and its source.

    Its keys, its Q4_0, every tensor quantized whatever its shape, dims as given, an alignment of 32, and "quantized" on
    every card. Q8_0, the layout of the card and the formats other than GGUF are ours.
    """

    exporter = MakesFoldersFirst

    def dims(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """As given."""
        return shape

    def types(self, shapes: Shapes, quantization: GGUFQuantization) -> dict[str, GGMLType]:
        """One type for all."""
        return dict.fromkeys(shapes, GGMLType[quantization.value])

    def pairs(self, model: ModelWeights, quantization: GGUFQuantization, include: bool, quantized: bool) -> Any:
        """The five keys of the document."""
        if not include:
            return {}
        about = model.metadata
        pairs = {
            "general.architecture": about.architecture,
            "general.name": about.model_name,
            "general.parameter_count": Typed(model.num_params, ValueType.UINT64),
            "general.hidden_size": _u32(about.hidden_size),
            "general.num_layers": _u32(about.num_layers),
        }
        return {key: value for key, value in pairs.items() if value is not None}

    def tagged(self, quantized: bool) -> bool:
        """Always: ``pipeline.rs``, ``generate_quant_readme``."""
        return True


class AlignedTo64(InMemory):
    """A correct exporter whose files have an alignment of 64."""

    alignment = 64

    def pairs(self, model: ModelWeights, quantization: GGUFQuantization, include: bool, quantized: bool) -> Any:
        """The key that states the alignment as well."""
        return super().pairs(model, quantization, include, quantized) | {"general.alignment": Typed(64, ValueType.UINT32)}


def _u32(value: int | None) -> Typed | None:
    return None if value is None else Typed(value, ValueType.UINT32)
