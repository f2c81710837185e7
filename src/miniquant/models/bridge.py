"""The bridge from a quantized model to llama.cpp: which specification is which GGUF type, and the file itself.

What crosses are integers, scales and mins as they are: nothing is rounded a second time, so the file's weights are
the frozen model's, bit for bit.

Source: Quark's documentation, "Bridge from Quark to llama.cpp", with the types as ggml really has them.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from ..core.arrays import to_numpy
from ..core.errors import FormatError, SchemeError
from ..formats.gguf import GGMLType, RawTensor, write_gguf
from ..formats.gguf.codecs import codec_of
from ..formats.gguf.grids import encode_grid
from ..quantization.grids import Grid, GridRule, QuantizedMatrix
from ..quantization.spec import Dtype, QSchemeType, QuantizationSpec, ScaleType, differences
from .quantizer import frozen_layers, quantized_layers


def _blocks_of_32(dtype: Dtype, symmetric: bool) -> QuantizationSpec:
    return QuantizationSpec(dtype, symmetric, ScaleType.float16, qscheme=QSchemeType.per_group, group_size=32)


GGUF_TYPES: dict[QuantizationSpec, GGMLType] = {
    _blocks_of_32(Dtype.int8, True): GGMLType.Q8_0,
    _blocks_of_32(Dtype.uint8, True): GGMLType.Q8_0,  # stored less its zero point, 128
    _blocks_of_32(Dtype.int4, True): GGMLType.Q4_0,
    _blocks_of_32(Dtype.uint4, True): GGMLType.Q4_0,  # its zero point is 8, and so is the one of the type
    _blocks_of_32(Dtype.uint4, False): GGMLType.Q4_1,
}
STORED = ("dtype", "symmetric", "scale_type", "qscheme", "group_size")  # what blocks depend on
_TYPES_BY_RULE = {kind.name: kind for kind in GGUF_TYPES.values()}


def gguf_type(rule: QuantizationSpec | GridRule) -> GGMLType:
    """The GGUF type that holds what a rule makes of weights.

    How numbers were rounded and which range was observed leaves no trace in a block, and does not count.

    Raises ``SchemeError`` for a rule without a type; the message lists the nearest types and what to change.

    >>> gguf_type(QuantizationSpec(Dtype.uint4, symmetric=False, qscheme=QSchemeType.per_group, group_size=32)).name
    'Q4_1'
    """
    if not isinstance(rule, QuantizationSpec):
        if rule.name not in _TYPES_BY_RULE:
            raise SchemeError(f"no GGUF type holds {rule.name}; there are {', '.join(_TYPES_BY_RULE)}")
        return _TYPES_BY_RULE[rule.name]
    changes: dict[GGMLType, dict[str, tuple[Any, Any]]] = {}
    for known, kind in GGUF_TYPES.items():
        needed = {name: pair for name, pair in differences(rule, known).items() if name in STORED}
        if not needed:
            return kind
        if kind not in changes or len(needed) < len(changes[kind]):
            changes[kind] = needed
    nearest = sorted(changes, key=lambda kind: len(changes[kind]))
    advice = "; ".join(f"{kind.name} needs {_in_words(changes[kind])}" for kind in nearest)
    raise SchemeError(f"no GGUF type holds {rule.name}. Nearest first: {advice}")


def _in_words(changes: dict[str, tuple[Any, Any]]) -> str:
    return ", ".join(f"{name}={_word(wanted)} (found {_word(found)})" for name, (found, wanted) in changes.items())


def _word(value: Any) -> str:
    return value.name if isinstance(value, Enum) else str(value)


def encode_quantized(quantized: QuantizedMatrix, kind: GGMLType) -> np.ndarray:
    """The integers and grid of a frozen layer as blocks of a type: (out, row_bytes) uint8.

    A symmetric unsigned grid becomes the signed one that the type has; the numbers that it stands for stay the same.

    Raises ``QuantizationError`` for a grid that the type cannot hold.
    """
    q, grid = quantized
    middle = (grid.high + 1) // 2
    if not codec_of(kind).has_min and grid.low == 0 and np.array_equal(grid.minimum, -middle * grid.scale):
        q = q.astype(np.int16) - middle
        grid = Grid.symmetric(grid.scale, -middle, grid.high - middle)
    return encode_grid(q, grid, kind)


def gguf_types_table() -> str:
    """``GGUF_TYPES`` in Markdown, for the book."""
    rows = ["| GGUF type | " + " | ".join(f"`{name}`" for name in STORED) + " | bits a weight |", "| --- " * 7 + "|"]
    for spec, kind in GGUF_TYPES.items():
        cells = [_word(getattr(spec, name)) for name in STORED]
        rows.append(f"| {kind.name} | {' | '.join(cells)} | {kind.bits_per_weight} |")
    return "\n".join(rows)


@dataclass(frozen=True)
class JsonExporterConfig:
    """How Quark writes its own JSON format; a GGUF file needs none of it."""


@dataclass(frozen=True)
class ExporterConfig:
    """What Quark's exporter is made with."""

    json_export_config: JsonExporterConfig = JsonExporterConfig()


class ModelExporter:
    """Writes frozen models into a folder. Raises ``SchemeError`` for a ``config`` that is no ``ExporterConfig``."""

    def __init__(self, config: ExporterConfig | None = None, export_dir: str | os.PathLike[str] = ".") -> None:
        if not isinstance(config, ExporterConfig | None):
            raise SchemeError(f"config={config!r} is no ExporterConfig; a folder is export_dir={config!r}")
        self.config, self.export_dir = config or ExporterConfig(), Path(export_dir)

    def export_gguf_model(
        self, model: nn.Module, tokenizer_path: str | os.PathLike[str], model_type: str, embedding: str | None = None
    ) -> Path:
        """Write ``{model_type}.gguf``, which llama.cpp runs, and return its path.

        Texts that get other tokens in llama.cpp than in transformers are named in printed notes.

        ``model``: frozen; its quantized layers keep their integers and scales. Linear layers that are not quantized
        stay F32, like norms and biases.
        ``tokenizer_path``: the folder that the model came from: ``tokenizer.json``, and for a Llama or Qwen2
        ``config.json``.
        ``model_type``: ``"minigpt"`` or ``"gpt2"`` for a MiniGPT, ``"llama"`` for ``LlamaForCausalLM`` of transformers,
        ``"qwen2"`` for its ``Qwen2ForCausalLM``.
        ``embedding``: the type of the token embedding and of an output head that is not quantized; by default the
        layers' type, and Q8_0 where that has 4 bits.

        Raises ``SchemeError`` for a model that is not frozen or was changed since, a specification without a GGUF type,
        inputs that are rounded (a file holds weights only), an unknown model type or a folder without a tokenizer,
        before anything is written; ``FormatError`` for a folder that describes another model; and whatever
        ``write_gguf`` raises.
        """
        make = _MODELS.get((type(model).__name__, model_type))
        if make is None:
            known = ", ".join(f"{name} as {kind!r}" for name, kind in _MODELS)
            raise SchemeError(f"no rule for {type(model).__name__} as {model_type!r}; there are {known}")
        layers = _Layers(model)
        tensors, metadata, notes = make(model, Path(tokenizer_path), layers, embedding)
        path = self.export_dir / f"{model_type}.gguf"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_gguf(path, tensors, metadata)
        for note in notes:
            print(f"note: {note}")
        return path


class _Layers:
    """The quantized layers of a model and their GGUF types, once it is certain that all of them can be exported."""

    def __init__(self, model: nn.Module) -> None:
        self.layers = quantized_layers(model)
        if not self.layers:
            raise SchemeError(
                "nothing in this model is quantized; call ModelQuantizer(...).quantize_model, then freeze"
            )
        self.frozen = frozen_layers(model)
        if any(layer.input is not None or layer.output is not None for layer in self.layers.values()):
            raise SchemeError(
                "a GGUF file holds weights only, and this model rounds the inputs or outputs of its layers too; "
                "llama.cpp rounds inputs by itself, so quantize without input_tensors and output_tensors"
            )
        self.kinds = {}
        for name, layer in self.layers.items():
            try:
                self.kinds[name] = gguf_type(layer.rule)
            except SchemeError as error:
                raise SchemeError(f"{name!r}: {error}") from None
        self.main = Counter(self.kinds.values()).most_common(1)[0][0].name

    def tensor(self, name: str, w: Any, otherwise: GGMLType | str, order: np.ndarray | None = None) -> Any:
        """What to write for a parameter: the blocks of a quantized layer, or the weights and the type ``otherwise``.

        ``order``: for every row of the file, the row of the model.
        """
        rows: slice | np.ndarray = slice(None) if order is None else order
        owner, _, part = name.rpartition(".")
        if part != "weight" or owner not in self.kinds:
            return to_numpy(w)[rows], otherwise
        (q, grid), kind = self.frozen[owner], self.kinds[owner]
        turned = QuantizedMatrix(q[rows], grid.rows(rows))
        return RawTensor(encode_quantized(turned, kind), kind, q.shape)


Tensors = tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]  # metadata; which texts get other tokens


def _minigpt(model: Any, folder: Path, layers: _Layers, embedding: str | None) -> Tensors:
    from .to_gguf import gguf_name, minigpt_metadata, minigpt_types

    metadata = minigpt_metadata(model, _tokenizer(folder), layers.main)
    head = minigpt_types(model, layers.main, embedding)["tok_emb.weight"]
    tensors = {
        gguf_name(name): layers.tensor(name, w, head if name == "tok_emb.weight" else "F32")
        for name, w in model.state_dict().items()
    }
    return tensors, metadata, ()


def _llama(model: Any, folder: Path, layers: _Layers, embedding: str | None) -> Tensors:
    from .file_types import HEADS, QUANTIZATION_VERSION, file_type
    from .huggingface.convert import places_of, read_recipe
    from .huggingface.llama import rope_order
    from .huggingface.tokenizer import read_tokenizer

    recipe, config = read_recipe(folder)
    recipe = recipe._replace(tied=bool(model.config.tie_word_embeddings))  # a rotated model's head stands alone
    state, tensors = model.state_dict(), {}
    kind = file_type(layers.main)
    head = embedding or kind.head
    for row in places_of(recipe):
        w = state.get(row.theirs)
        if w is None or tuple(w.shape) != row.shape:
            found = "none" if w is None else str(tuple(w.shape))
            raise FormatError(
                f"it makes {row.theirs!r} a tensor of shape {row.shape}, and the model has {found}; "
                "pass the folder that the model came from",
                path=config.path,
            )
        order = rope_order(row.heads, row.shape[0] // row.heads) if row.heads else None
        tensors[row.ours] = layers.tensor(row.theirs, w, head if row.ours in HEADS else "F32", order)
    extra = state.keys() - {row.theirs for row in places_of(recipe)} - ({"lm_head.weight"} if recipe.tied else set())
    if extra:
        raise FormatError(
            f"the model holds {min(extra)!r}, which has no place in what it describes; "
            "pass the folder that the model came from",
            path=config.path,
        )
    tokenizer = read_tokenizer(folder, config, recipe.vocabulary)
    metadata = recipe.metadata | {
        "general.name": folder.resolve().name or "model",
        "general.file_type": kind.number,
        "general.quantization_version": QUANTIZATION_VERSION,
        **tokenizer.metadata,
    }
    return tensors | recipe.added(), metadata, tokenizer.notes


_MODELS = {
    ("MiniGPT", "minigpt"): _minigpt,
    ("MiniGPT", "gpt2"): _minigpt,
    ("LlamaForCausalLM", "llama"): _llama,
    ("Qwen2ForCausalLM", "qwen2"): _llama,
}


def _tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.is_file():
        raise SchemeError(f"{folder} holds no tokenizer.json; llama.cpp needs the model's tokenizer in the file")
    try:
        return Tokenizer.from_str(path.read_text("utf-8"))
    except Exception as error:  # the package raises nothing narrower
        raise SchemeError(f"{path} is no tokenizer: {error}") from None
