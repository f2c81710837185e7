"""An export pipeline: weights with metadata, an exporter that knows formats, a model card beside the file.

Built after Entrenar's specification "GGUF Export Pipeline", with real GGUF where the two differ: the keys of the
specification, ggml's Q4_0, rows of whole blocks. Its sixteen claims are ``tests/models/test_claims.py``.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from ..core.arrays import to_numpy
from ..core.errors import FormatError, MetadataError, PickleSecurityRisk, QuantizationError, SchemeError
from ..core.reading import Source
from ..formats.apr.read import open_apr
from ..formats.apr.write import write_apr
from ..formats.gguf import GGMLType, Typed, ValueType, encode, read_gguf, write_gguf
from ..formats.registry import format_of_name
from ..formats.safetensors.write import write_safetensors
from .card import card_path, write_card

BLOCK = 32


class GGUFQuantization(Enum):
    """How the matrices of a GGUF file are stored."""

    NONE = "F32"
    Q4_0 = "Q4_0"
    Q8_0 = "Q8_0"


class ExportFormat(Enum):
    """The formats that a file name can ask for. PYTORCH is known, so that it can be refused by name."""

    GGUF = "gguf"
    SAFETENSORS = "safetensors"
    APR = "apr"
    PYTORCH = "pytorch"

    @classmethod
    def from_path(cls, path: str | PurePath) -> ExportFormat | None:
        """The format that a path's extension names in the registry, or ``None``.

        >>> ExportFormat.from_path("a/model.apr.json"), ExportFormat.from_path("model.txt")
        (<ExportFormat.APR: 'apr'>, None)
        """
        known = format_of_name(path)
        if known is None:
            return None
        return cls.PYTORCH if known.name == "pickle" else next((one for one in cls if one.value == known.name), None)

    @property
    def extension(self) -> str:
        """The extension of a file of this format, without the dot: ``from_path`` of such a name is this format again.

        >>> [format.extension for format in ExportFormat]
        ['gguf', 'safetensors', 'apr.json', 'pt']
        """
        return {ExportFormat.APR: "apr.json", ExportFormat.PYTORCH: "pt"}.get(self, self.value)

    @property
    def is_safe(self) -> bool:
        """Whether loading such a file runs no code: true of all but PYTORCH, which is a pickle."""
        return self is not ExportFormat.PYTORCH

    def __str__(self) -> str:
        """The format's name for people.

        >>> print(*ExportFormat)
        GGUF SafeTensors APR PyTorch
        """
        return {ExportFormat.SAFETENSORS: "SafeTensors", ExportFormat.PYTORCH: "PyTorch"}.get(self, self.name)


@dataclass(frozen=True)
class ModelMetadata:
    """What is known about a model; ``None`` is not written. ``training`` is free text or numbers, for people."""

    architecture: str | None = None
    model_name: str | None = None
    num_params: int | None = None
    hidden_size: int | None = None
    num_layers: int | None = None
    vocab_size: int | None = None
    training: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelWeights:
    """Tensors by name (float32, in numpy's order of dims) with their metadata.

    ``num_params`` is counted where the metadata leaves it out.
    """

    tensors: Mapping[str, np.ndarray]
    metadata: ModelMetadata = field(default_factory=ModelMetadata)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor."""
        return {name: tuple(w.shape) for name, w in self.tensors.items()}

    @property
    def num_params(self) -> int:
        """The stated number of parameters, or the number of weights."""
        return self.metadata.num_params or sum(math.prod(shape) for shape in self.shapes.values())

    @classmethod
    def from_model(cls, model: Any, name: str | None = None) -> ModelWeights:
        """The weights of a MiniGPT, with what its config says about it, under the names that llama.cpp gives them.

        Raises ``SchemeError`` for a quantized layer that is not frozen: its weights are not those it computes with.
        """
        from .quantizer import refuse_thawed
        from .to_gguf import gguf_name

        refuse_thawed(model)
        config = model.config
        tensors = {gguf_name(key): to_numpy(w) for key, w in model.state_dict().items()}
        about = ModelMetadata("gpt2", name, None, config.d_model, config.n_layers, config.vocab_size)
        return cls(tensors, about)


@dataclass(frozen=True)
class ExportResult:
    """What was written, and where."""

    path: Path
    format: ExportFormat
    size_bytes: int
    num_tensors: int


@dataclass(frozen=True)
class QuantizedExport:
    """An export and the model card that belongs beside it."""

    export: ExportResult
    readme: str
    quantization: GGUFQuantization


@dataclass(frozen=True)
class Exporter:
    """Writes ``ModelWeights`` in one of several formats.

    A matrix whose rows are whole blocks takes ``gguf_quantization``; every other tensor of a GGUF file stays F32.
    ``include_metadata=False`` writes none, or only the key that quantized tensors of a GGUF file need.
    """

    output_dir: Path | str = "."
    gguf_quantization: GGUFQuantization = GGUFQuantization.NONE
    include_metadata: bool = True
    default_format: ExportFormat = ExportFormat.SAFETENSORS

    def export(self, weights: ModelWeights, format: ExportFormat, filename: str) -> ExportResult:
        """Write ``filename`` into the output folder, atomically; tensors in the order of their names.

        Before anything touches the disk, raises ``PickleSecurityRisk`` for PYTORCH, and ``SchemeError`` for a
        ``gguf_quantization`` in another format or a file name that leaves the output folder; then whatever the format's
        writer raises.
        """
        if not format.is_safe:
            raise PickleSecurityRisk(
                f"{filename}: a PyTorch file is a pickle, and loading one runs code; export as .safetensors or .gguf"
            )
        if self.gguf_quantization != GGUFQuantization.NONE and format != ExportFormat.GGUF:
            raise SchemeError(
                f"gguf_quantization={self.gguf_quantization.name} is for GGUF files, and {filename} is to be "
                f"{format}, which stores float32; leave the option out, or export as GGUF"
            )
        path = self.path_of(filename)
        tensors = {name: to_numpy(weights.tensors[name]) for name in sorted(weights.tensors)}
        write = {ExportFormat.GGUF: self._gguf, ExportFormat.SAFETENSORS: _safetensors, ExportFormat.APR: _apr}[format]
        weights = weights if self.include_metadata else ModelWeights(weights.tensors)
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, tensors, weights)
        return ExportResult(path, format, path.stat().st_size, len(tensors))

    def path_of(self, filename: str) -> Path:
        """Where ``export`` writes ``filename``. Raises ``SchemeError`` if that is outside the output folder."""
        target = PurePath(filename)
        if not target.name or target.is_absolute() or ".." in target.parts:
            raise SchemeError(f"the file name {filename!r} leaves the output folder {self.output_dir}")
        return Path(self.output_dir) / target

    def export_auto(self, weights: ModelWeights, filename: str) -> ExportResult:
        """``export`` in the format that the file name asks for, or in ``default_format``."""
        return self.export(weights, ExportFormat.from_path(filename) or self.default_format, filename)

    def _gguf(self, path: Path, tensors: Mapping[str, np.ndarray], weights: ModelWeights) -> None:
        kinds = export_types({name: w.shape for name, w in tensors.items()}, self.gguf_quantization)
        pairs = export_metadata(weights, self.gguf_quantization) if self.include_metadata else {}
        if any(kind.quantized for kind in kinds.values()):
            pairs["general.quantization_version"] = _QUANTIZATION_VERSION
        write_gguf(path, {name: (w, kinds[name]) for name, w in tensors.items()}, pairs)


_QUANTIZATION_VERSION = Typed(2, ValueType.UINT32)


def export_types(shapes: Mapping[str, tuple[int, ...]], quantization: GGUFQuantization) -> dict[str, GGMLType]:
    """Matrices with rows of whole blocks take the quantization; vectors and odd rows stay F32, as llama.cpp wants it.

    >>> export_types({"w": (4, 64), "bias": (64,), "odd": (4, 33)}, GGUFQuantization.Q8_0)["w"].name
    'Q8_0'
    """
    kind = GGMLType[quantization.value]
    return {n: kind if len(s) >= 2 and s[-1] % BLOCK == 0 else GGMLType.F32 for n, s in shapes.items()}


def export_metadata(weights: ModelWeights, quantization: GGUFQuantization) -> dict[str, Any]:
    """The real keys of GGUF, typed.

    Raises ``MetadataError`` if a size is known and the architecture, which its key begins with, is not.
    """
    about = weights.metadata
    pairs: dict[str, Any] = {}
    if about.architecture is not None:
        pairs["general.architecture"] = about.architecture
    if about.model_name is not None:
        pairs["general.name"] = about.model_name
    pairs["general.parameter_count"] = Typed(weights.num_params, ValueType.UINT64)
    sizes = {"embedding_length": about.hidden_size, "block_count": about.num_layers, "vocab_size": about.vocab_size}
    for key, value in sizes.items():
        if value is None:
            continue
        if about.architecture is None:
            raise MetadataError(f"{key} is {value}, and its GGUF key begins with the architecture, which is not given")
        pairs[f"{about.architecture}.{key}"] = Typed(value, ValueType.UINT32)
    pairs["general.quantization_version"] = _QUANTIZATION_VERSION
    return pairs


def quantize_to_gguf_bytes(data: np.ndarray, quantization: GGUFQuantization) -> tuple[bytes, GGMLType]:
    """Encode a flat array as the blocks of a GGUF type; the last block is filled up with zeros.

    data: (n,) float32   ->   ceil(n / 32) blocks (F32: n numbers), and their type

    >>> len(quantize_to_gguf_bytes(np.ones(33, np.float32), GGUFQuantization.Q4_0)[0])
    36
    """
    kind, flat = GGMLType[quantization.value], to_numpy(data).reshape(-1)
    if not np.isfinite(flat).all() and kind != GGMLType.F32:
        raise QuantizationError(f"the weight at {int(np.argmin(np.isfinite(flat)))} is not finite")
    padded = np.pad(flat, (0, -len(flat) % kind.block))
    return encode(padded, kind).tobytes() if len(padded) else b"", kind


def quantize_and_export(
    weights: ModelWeights, quantization: GGUFQuantization, output_dir: Path | str, filename: str
) -> QuantizedExport:
    """Write a GGUF file, check it as a loader would, and write its model card beside it as README.md.

    Raises ``WriteError``, and writes nothing, if the folder of the file has a README.md that is no model card of this
    kind, or if ``filename`` is README.md; else whatever ``Exporter.export`` raises.
    """
    exporter = Exporter(output_dir, quantization)
    card_path(exporter.path_of(filename))  # before anything is written
    result = exporter.export(weights, ExportFormat.GGUF, filename)
    types = verify_gguf(result.path).types
    fits = quantization == GGUFQuantization.NONE or quantization.value in types
    said = quantization.value if fits else f"{quantization.value} (no tensor fits)"
    return QuantizedExport(result, write_card(result.path, weights, said), quantization)


# ---- what a loader would say -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GGUFSummary:
    """A GGUF file that passed every check: ``tensors`` maps names to (type, shape, bytes)."""

    version: int
    tensor_count: int
    metadata_count: int
    tensors: dict[str, tuple[str, tuple[int, ...], int]]
    metadata: dict[str, Any]
    file_bytes: int

    @property
    def types(self) -> dict[str, tuple[int, int]]:
        """type -> (tensors, bytes)."""
        counts, sizes = Counter[str](), Counter[str]()
        for kind, _, size in self.tensors.values():
            counts[kind] += 1
            sizes[kind] += size
        return {kind: (counts[kind], sizes[kind]) for kind in counts}


def verify_gguf(source: Source) -> GGUFSummary:
    """Read a GGUF file, by its path or as bytes, as a loader does, every check included, truncated data among them.

    Raises ``FormatError`` for a malformed file, ``OSError`` for one that cannot be opened.
    """
    with read_gguf(source) as file:
        tensors = {n: (info.dtype.name, info.shape, info.n_bytes) for n, info in file.tensors.items()}
        metadata = {k: v if isinstance(v, str | int | float) else list(v[:8]) for k, v in file.metadata.items()}
        return GGUFSummary(file.version or 0, len(tensors), len(metadata), tensors, metadata, file.n_bytes)


# ---- the other formats -----------------------------------------------------------------------------------------------


def _safetensors(path: Path, tensors: Mapping[str, np.ndarray], weights: ModelWeights) -> None:
    about = {k: v if isinstance(v, str) else json.dumps(v) for k, v in asdict(weights.metadata).items() if v}
    write_safetensors(path, tensors, about)


def _apr(path: Path, tensors: Mapping[str, np.ndarray], weights: ModelWeights) -> None:
    write_apr(path, tensors, {key: value for key, value in asdict(weights.metadata).items() if value is not None})


def read_apr(source: Source) -> ModelWeights:
    """The weights of an APR file. Raises ``FormatError`` for a malformed one."""
    with open_apr(source) as file:
        try:
            about = ModelMetadata(**file.metadata)
        except TypeError as error:
            raise FormatError(f"this is no APR file: {error}", path=file.path, field="metadata") from None
        return ModelWeights({name: file.tensor(name) for name in file.tensors}, about)
