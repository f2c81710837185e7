"""A Hugging Face folder, with its tokenizer, as a GGUF file that llama.cpp runs: Llama, Qwen2 and GPT-2.

A recipe (``llama``, ``qwen2``, ``gpt2``) turns ``config.json`` into llama.cpp's keys and a table of tensors. Every
tensor of the checkpoint must have its place in that table, and every place its tensor; then the weights are read,
turned, encoded and written a few rows at a time, so that a model larger than the memory can be converted.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import bfloat16_to_float32, to_numpy
from ...core.errors import FormatError, QuantizationError, SchemeError
from ...formats.gguf.codecs import CODECS
from ...formats.gguf.imatrix import read_imatrix
from ...formats.gguf.types import GGMLType
from ...formats.gguf.write import LazyTensor, largest, weighed, write_gguf
from ...formats.safetensors.read import Stored, listed, open_checkpoint
from ...formats.safetensors.types import SafetensorsType
from ..file_types import FileType, file_type, quantization_version
from ..progress import Advance, counter, nobody
from .config import Config, Recipe, Row, check_plain
from .gpt2 import gpt2
from .llama import llama, qwen2, rope_order
from .tokenizer import read_tokenizer

ARCHITECTURES: dict[str, tuple[str, Callable[[Config], Recipe]]] = {  # name: (model_type, recipe)
    "LlamaForCausalLM": ("llama", llama),
    "Qwen2ForCausalLM": ("qwen2", qwen2),
    "GPT2LMHeadModel": ("gpt2", gpt2),
}
_PIECE = 2**20  # weights


class Converted(NamedTuple):
    """What became of a folder: the type of every tensor in the GGUF file, and the tensors left out, with the reason.

    ``notes`` say which texts get other tokens than in transformers. ``weighed`` are the tensors whose columns an
    importance matrix weighed, of those ``quantized``.
    """

    types: dict[str, str]
    skipped: dict[str, str]
    notes: tuple[str, ...] = ()
    weighed: frozenset[str] = frozenset()
    quantized: tuple[str, ...] = ()


def convert_folder(
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    kind: GGMLType | str | FileType = "Q8_0",
    advance: Advance = nobody,
    imatrix: str | os.PathLike[str] | None = None,
) -> Converted:
    """Convert a Hugging Face folder into one GGUF file.

    ``advance(done, total, tensor)`` hears of each piece, in weights.

    Matrices take the type ``kind``, vectors and position embeddings stay F32, and token embedding and output head take
    what a codec names as ``head``; a mix, or another one of ``PRESETS``, follows llama.cpp's rules. ``imatrix``: a file
    that says how much each column of each matrix counts.

    Raises ``FormatError`` for a folder that is damaged, incomplete, or would run differently in llama.cpp,
    ``PickleSecurityRisk`` for a checkpoint that is a pickle, ``SchemeError`` for a type that does not exist or does not
    fit, and whatever ``write_gguf`` raises. Nothing is written then.
    """
    folder, chosen = Path(folder), file_type(kind)
    recipe, config = read_recipe(folder)
    stored = open_checkpoint(folder)
    rows, skipped = match(recipe, stored, config, folder)
    matrix = None if imatrix is None else read_imatrix(imatrix)
    types = _types([row for row, _ in rows], chosen, recipe.metadata, matrix is not None)
    quantized = {name: shape for name, shape in _shapes([row for row, _ in rows]).items() if types[name].quantized}
    counts = {} if matrix is None else matrix.importances(quantized)
    tokenizer = read_tokenizer(folder, config, recipe.vocabulary)
    metadata = recipe.metadata | {
        "general.name": folder.resolve().name or "model",
        "general.file_type": chosen.number,
        **tokenizer.metadata,
        **quantization_version(types.values()),
        **({} if matrix is None or imatrix is None else matrix.keys(imatrix)),
    }
    count = counter((row.shape for row, _ in rows), advance)
    tensors = {
        row.ours: weighed(lazily(row, where, count), types[row.ours], counts.get(row.ours)) for row, where in rows
    }
    added = {name: (w, GGMLType.F32) for name, w in recipe.added().items()}
    write_gguf(path, tensors | added, metadata)
    names = {name: kind.name for name, kind in types.items()} | {name: kind.name for name, (_, kind) in added.items()}
    used = frozenset(name for name in counts if CODECS[types[name]].weighs)
    return Converted(names, skipped, tokenizer.notes, used, tuple(quantized))


def write_llama(
    path: str | os.PathLike[str],
    model: Any,
    folder: str | os.PathLike[str],
    kind: GGMLType | str | FileType = "F32",
) -> dict[str, str]:
    """Write a Llama or Qwen2 of transformers as a GGUF file that llama.cpp runs: its weights as they are in memory.

    ``folder`` is the one that the model came from; ``config.json`` and the tokenizer are read there, and the weights in
    it are not. A model whose head is no longer tied, as after a rotation, gets the head as a tensor of its own.
    Types are chosen as in ``convert_folder``   ->   the type of every tensor

    Raises ``SchemeError`` for a model of another class, ``FormatError`` for a folder that describes another one, and
    whatever ``write_gguf`` raises. Nothing is written then.
    """
    folder, chosen = Path(folder), file_type(kind)
    name = type(model).__name__
    recipe, config = read_recipe(folder)
    if name not in ("LlamaForCausalLM", "Qwen2ForCausalLM") or config.get("architectures") != [name]:
        raise SchemeError(f"a {name} cannot be written as what {folder} describes; there are Llama and Qwen2")
    recipe = recipe._replace(tied=bool(model.config.tie_word_embeddings))
    state, rows = model.state_dict(), places_of(recipe)
    for row in rows:
        found = tuple(state[row.theirs].shape) if row.theirs in state else None
        if found != row.shape:
            raise config.error(
                "architectures", f"it makes {row.theirs!r} a tensor of shape {row.shape}, and the model has {found}"
            )
    types = _types(rows, chosen, recipe.metadata)
    tokenizer = read_tokenizer(folder, config, recipe.vocabulary)
    metadata = recipe.metadata | {
        "general.name": folder.resolve().name or "model",
        "general.file_type": chosen.number,
        **tokenizer.metadata,
        **quantization_version(types.values()),
    }
    tensors = {}
    for row in rows:
        w = to_numpy(state[row.theirs])
        tensors[row.ours] = (w[rope_order(row.heads, len(w) // row.heads)] if row.heads else w, types[row.ours])
    added = {name: (w, GGMLType.F32) for name, w in recipe.added().items()}
    write_gguf(path, tensors | added, metadata)
    return {name: kind.name for name, (_, kind) in (tensors | added).items()}


def read_recipe(folder: Path) -> tuple[Recipe, Config]:
    """The recipe for a folder's ``config.json``. Raises ``FormatError`` for an unknown architecture or key."""
    if not (folder / "config.json").exists():
        raise FormatError("no config.json in it: this is no Hugging Face model folder", path=folder)
    config = Config(folder / "config.json")
    names = config.get("architectures")
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str) or names[0] not in ARCHITECTURES:
        raise config.error("architectures", f"found {names!r:.80}; this converter knows {', '.join(ARCHITECTURES)}")
    model_type, make = ARCHITECTURES[names[0]]
    config.one_of("model_type", (model_type,), model_type)
    check_plain(config)
    recipe = make(config)
    config.check_all_read()
    return recipe, config


def places_of(recipe: Recipe) -> list[Row]:
    """Every tensor that the file will have from the checkpoint, layer by layer; not the head, where it is tied."""
    rows = [row for row in recipe.whole if not (recipe.tied and row.ours == "output.weight")]
    for n in range(recipe.layers):
        rows += [row._replace(theirs=row.theirs.format(n), ours=row.ours.format(n)) for row in recipe.layer]
    return rows


def match(
    recipe: Recipe, stored: Mapping[str, Stored], config: Config, folder: Path
) -> tuple[list[tuple[Row, Stored]], dict[str, str]]:
    """Every row of the recipe with its tensor, and the tensors that are left out, with the reason.

    Raises ``FormatError`` for a tensor without a place, a place without a tensor, and a shape that does not fit.
    """
    found: dict[str, Stored] = {}
    for name, where in stored.items():
        short = name.removeprefix(recipe.prefix)
        if short in found:
            raise FormatError(f"{short[:80]!r} stands there with and without {recipe.prefix!r}", path=where.path)
        found[short] = where
    skipped = {name: "a buffer, computed anew" for name in found if re.fullmatch(recipe.skipped, name)}
    if recipe.layers > len(found):  # before anything of that size is built
        raise config.error(
            "n_layer" if recipe.metadata["general.architecture"] == "gpt2" else "num_hidden_layers",
            f"found {recipe.layers}, and {len(found)} tensors cannot make up as many layers",
        )
    expected = places_of(recipe)
    if recipe.tied and "lm_head.weight" in found:
        embedding = recipe.whole[0].theirs
        _check_tied(found, embedding, config)
        skipped["lm_head.weight"] = f"tied, equal to {embedding}"
    places = {row.theirs for row in expected}
    if missing := places - found.keys():
        raise FormatError(f"the checkpoint lacks {_quoted(missing)}", path=folder)
    if extra := found.keys() - places - skipped.keys():
        raise FormatError(
            f"the checkpoint holds {_quoted(extra)}, without a place in {config.get('architectures')[0]} "
            "as config.json describes it; nothing is dropped silently",
            path=found[min(extra)].path,
        )
    for row in expected:
        if found[row.theirs].shape != row.shape:
            raise FormatError(
                f"found shape {found[row.theirs].shape}, config.json makes it {row.shape}",
                path=found[row.theirs].path,
                field=f"tensor {row.theirs!r}",
            )
    return [(row, found[row.theirs]) for row in expected], skipped


def _check_tied(found: Mapping[str, Stored], embedding: str, config: Config) -> None:
    """A head that config.json calls tied must be the embedding; it is compared piece by piece."""
    one, two = found.get(embedding), found["lm_head.weight"]
    same = one is not None and one.shape == two.shape and one.dtype == two.dtype
    if one is not None and same and one.n_bytes:
        step = max(1, _PIECE * one.shape[0] // math.prod(one.shape))
        pieces = ((at, min(at + step, one.shape[0])) for at in range(0, one.shape[0], step))
        same = all(np.array_equal(_bits(one, *piece), _bits(two, *piece)) for piece in pieces)
    if not same:
        raise config.error(
            "tie_word_embeddings", f"it is true, and lm_head.weight is not {embedding}; say false to keep both"
        )


def _bits(stored: Stored, start: int, stop: int) -> np.ndarray:
    return stored.rows(start, stop).view(np.uint8)


_HELD = {SafetensorsType.F32: "float32", SafetensorsType.F16: "float16", SafetensorsType.BF16: "bfloat16"}


def lazily(row: Row, stored: Stored, count: Callable[[int, str], None] = lambda weights, tensor: None) -> LazyTensor:
    """A tensor as it will be in the GGUF file, read when it is written; ``count`` hears of every piece."""
    shape = row.shape[::-1] if row.transposed else row.shape
    order = rope_order(row.heads, row.shape[0] // row.heads) if row.heads else None

    def rows(start: int, stop: int) -> np.ndarray:
        if row.transposed:
            w = stored.columns(start, stop).T
        elif len(row.shape) == 1:
            w = stored.rows(0, row.shape[0])
            w = (w if order is None else w[order])[None]
        elif order is None:
            w = stored.rows(start, stop)
        else:
            wanted = order[start:stop]
            first = int(wanted.min())
            w = stored.rows(first, int(wanted.max()) + 1)[wanted - first]
        count(w.size, row.ours)
        w = bfloat16_to_float32(w) if w.dtype == np.uint16 else w
        if not math.isfinite(largest(w)):
            at, column = (int(i) for i in np.argwhere(~np.isfinite(w))[0])
            raise QuantizationError(
                f"{row.ours!r}: the weight at row {start + at}, column {column} is {w[at, column]}; "
                f"{row.theirs!r} in the checkpoint is damaged, and the model would compute nothing with it"
            )
        return w

    return LazyTensor(shape, _HELD[stored.dtype], rows)


def _shapes(rows: list[Row]) -> dict[str, tuple[int, ...]]:
    return {row.ours: row.shape[::-1] if row.transposed else row.shape for row in rows}


def _types(rows: list[Row], kind: FileType, metadata: Mapping[str, Any], weighed: bool = False) -> dict[str, GGMLType]:
    """The type of every tensor. Raises ``SchemeError`` for a matrix whose rows are no whole blocks."""
    shapes = _shapes(rows)
    quantized = kind.types_of(shapes, metadata, weighed)
    for row in rows:
        chosen, width = quantized.get(row.ours, GGMLType.F32), shapes[row.ours][-1]
        if width % chosen.block:
            fitting = [dtype.name for dtype in CODECS if CODECS[dtype].encodes and width % dtype.block == 0]
            raise SchemeError(
                f"{row.theirs!r} has rows of {width} weights, and {chosen.name} stores blocks of {chosen.block}; "
                f"what fits it is {', '.join(fitting)}"
            )
    return {name: quantized.get(name, GGMLType.F32) for name in shapes}


def _quoted(names: set[str]) -> str:
    return listed(names, lambda name: repr(name[:80]))
