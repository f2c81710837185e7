"""The model card: a README.md beside an exported file, which says what the file itself says. Only true tags."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import WriteError
from ..core.files import atomic_write
from ..formats.describe import describe
from ..formats.gguf.types import GGMLType
from ..formats.gguf_lite.sizes import human
from ..formats.gguf_lite.types import DType
from ..formats.tensor import TensorInfo

if TYPE_CHECKING:
    from .export import ModelWeights

CARD = "README.md"
_CARD_BEGIN = "---\ntags:\n- miniquant\n"


def card_path(path: str | os.PathLike[str]) -> Path:
    """Where the card of an exported file goes: README.md in the file's folder.

    Raises ``WriteError`` if the file itself has that name, or if the folder has a README.md that is no model card of
    this kind.
    """
    card = Path(path).with_name(CARD)
    if Path(path).name.lower() == CARD.lower():
        raise WriteError(f"cannot write {path}: {CARD} is the name of its model card; choose another file name")
    if card.exists() and not card.read_bytes().startswith(_CARD_BEGIN.encode()):
        raise WriteError(f"cannot write {card}: the one there is no model card of miniquant; choose another folder")
    return card


def model_card(path: str | os.PathLike[str], weights: ModelWeights, quantization: str) -> str:
    """The card of a file of any format: YAML front matter, then types, sizes and counts as they are read from it.

    ``quantization``: what was asked for, such as ``"Q8_0"``, in words. Raises ``FormatError`` for a malformed file.
    """
    about, found = weights.metadata, describe(path)
    quantized = any(_has_scales(info) for info in found.tensors)
    title, name = about.model_name or Path(path).stem, Path(path).name
    tags = ["miniquant", found.format, *(["quantized"] if quantized else [])]
    rows = [f"| {kind} | {count} | {human(size)} |" for kind, (count, size) in sorted(found.by_type().items())]
    training = [f"- {key}: {value}" for key, value in about.training.items()]
    lines = [
        "---",
        "tags:",
        *(f"- {tag}" for tag in tags),
        f"model_name: {json.dumps(title)}",
        "---",
        f"# {title}",
        "",
        f"- Architecture: {about.architecture or 'not stated'}",
        f"- Quantization: {quantization}",
        f"- File: `{name}`, {human(found.n_bytes)}",
        f"- Tensors: {len(found.tensors)}",
        f"- Parameters: {weights.num_params:,}",
        "",
        "| type | tensors | size |",
        "| --- | --- | --- |",
        *rows,
        *(["", "## Training", "", *training] if training else []),
    ]
    return "\n".join(lines) + "\n"


def _has_scales(info: TensorInfo[Any]) -> bool:
    if isinstance(info.dtype, DType):
        return info.dtype.scale_shape(info.shape) is not None
    return isinstance(info.dtype, GGMLType) and info.dtype.quantized


def write_card(path: str | os.PathLike[str], weights: ModelWeights, quantization: str) -> str:
    """Write the model card of an exported file beside it, and return its text. Raises as the two functions above."""
    card, text = card_path(path), model_card(path, weights, quantization)
    with atomic_write(card) as file:
        file.write(text.encode("utf-8"))
    return text
