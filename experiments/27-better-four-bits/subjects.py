"""The three models of the table, and how each becomes a GGUF file and comes back out of one."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer

from miniquant.calibrate import calibration_tokens, plant_outliers
from miniquant.calibrate.imatrix import collect_importance
from miniquant.formats.gguf import read_gguf, write_gguf
from miniquant.formats.gguf.imatrix import write_imatrix
from miniquant.models import corpus, minillama
from miniquant.models.bridge import ModelExporter
from miniquant.models.file_types import FILE_TYPES, HEADS, FileType
from miniquant.models.huggingface.convert import convert_folder
from miniquant.models.huggingface.llama import rope_order
from miniquant.models.language import gguf_names, logits_of
from miniquant.models.pretrained import load_pretrained
from miniquant.models.quantize_gguf import quantize_gguf
from miniquant.models.to_gguf import write_minigpt

ASSETS = Path(str(resources.files("miniquant").joinpath("assets")))


@dataclass(frozen=True)
class Subject:
    """A model of the table: its weights, the tokenizer it reads with, and how it is written as it is, in F32."""

    load: Callable[[], Any]
    tokenizer: Callable[[], Tokenizer]
    folder: Path  # tokenizer.json, and config.json of a Llama
    model_type: str
    weights: Path
    write: Callable[[Path, Any], Any]
    prepare: Callable[[Any], Any] = lambda model: model


def _write_minigpt(path: Path, model: Any) -> None:
    write_minigpt(path, model, corpus.load_tokenizer(), "F32")


_MINIGPT = (load_pretrained, corpus.load_tokenizer, ASSETS, "minigpt", ASSETS / "minigpt.safetensors", _write_minigpt)
SUBJECTS: dict[str, Subject] = {
    "MiniGPT": Subject(*_MINIGPT),
    "MiniGPT with planted outliers": Subject(*_MINIGPT, plant_outliers),
    "MiniLlama": Subject(
        minillama.load_minillama,
        minillama.load_tokenizer,
        minillama.folder(),
        "llama",
        minillama.folder() / "model.safetensors",
        lambda path, model: convert_folder(minillama.folder(), path, "F32"),
    ),
}


class Made(NamedTuple):
    """What a row is measured on: a model for PyTorch, a file for llama.cpp; either may be missing.

    n_bytes: of the file, or what one would have; bits: of a weight in the layers of the blocks, scales included.
    llamacpp: what else llama.cpp is told; about: what else is written down.
    """

    model: Any = None
    path: Path | None = None
    n_bytes: int | None = None
    bits: float | None = None
    llamacpp: Mapping[str, Any] = MappingProxyType({})
    about: Mapping[str, Any] = MappingProxyType({})


class Remembered:
    """The float model, which reads every window once, though each row asks for its logits twice."""

    def __init__(self, model: Any) -> None:
        self.model, self.logits = model, {}

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """tokens: (batch, time)   ->   logits: (batch, time, vocab_size)."""
        found = []
        for window in tokens:
            key = window.numpy().tobytes()
            if key not in self.logits:
                self.logits[key] = logits_of(self.model, window[None])[0]
            found.append(self.logits[key])
        return torch.stack(found)


class Workshop:
    """One model with all that its rows share: text, the float file, the importance matrix. Files go into ``folder``."""

    def __init__(self, subject: Subject, folder: Path, windows: int, calibration: int) -> None:
        self.subject, self.folder = subject, folder
        self.tokenizer = subject.tokenizer()
        self.windows = some(corpus.held_out_windows(tokenizer=self.tokenizer), windows)
        self.tokens = calibration_tokens(calibration, tokenizer=self.tokenizer)
        trained = subject.load()
        self.model, self.reference = subject.prepare(trained), Remembered(trained)
        self.places = _places(self.model)
        self.kept: dict[str, Any] = {}  # what a row leaves for the next one

    @cached_property
    def float_file(self) -> Path:
        """The model as it is, in F32."""
        path = self.folder / "float.gguf"
        self.subject.write(path, self.model)
        return path

    @cached_property
    def imatrix(self) -> Path:
        """Its importance matrix on the calibration text."""
        path = self.folder / "imatrix.gguf"
        write_imatrix(path, collect_importance(self.model, self.tokens, progress=False))
        return path

    def file_of(self, model: Any) -> Path:
        """Another model of the same shape, in F32, in a file like the float file."""
        path, state = self.folder / "changed.gguf", model.state_dict()
        with read_gguf(self.float_file) as like:
            tensors = {ours: (state[theirs].numpy()[rows], "F32") for ours, (theirs, rows) in self.places.items()}
            write_gguf(path, tensors, like.typed())
        return path

    def model_in(self, path: Path) -> Any:
        """The model that a file gives back, in float32."""
        twin = copy.deepcopy(self.model)
        with read_gguf(path) as file:
            for ours, (theirs, rows) in self.places.items():
                w = np.empty_like(found := file.tensor(ours))
                w[rows] = found
                twin.get_parameter(theirs).data = torch.from_numpy(w)
        return twin.eval()

    def quantized(self, kind: FileType, model: Any = None, weighed: bool = False) -> Made:
        """This model, or a changed one, in a file of a type or a mix; with the importance matrix where ``weighed``."""
        source, path = self.float_file if model is None else self.file_of(model), self.folder / "row.gguf"
        quantize_gguf(source, path, kind, imatrix=self.imatrix if weighed else None)
        return self.from_file(path)

    def exported(self, frozen: Any) -> Made:
        """A frozen model whose integers go into a file as they are."""
        exporter = ModelExporter(export_dir=self.folder)
        return self.from_file(exporter.export_gguf_model(frozen, self.subject.folder, self.subject.model_type))

    def in_pytorch(self, changed: Any, bits: float) -> Made:
        """A model whose layers lie on a grid that no GGUF type has; its head is Q8_0, and its bytes are counted."""
        kind = FILE_TYPES["F32"].choosing({name: "Q8_0" for name in HEADS if name in self.places})
        path = self.folder / "row.gguf"
        quantize_gguf(self.file_of(changed), path, kind)
        made = self.from_file(path)
        weights = sum(changed.get_parameter(theirs).numel() for theirs in self.layers)
        return made._replace(path=None, n_bytes=made.n_bytes - 4 * weights + round(bits * weights / 8), bits=bits)

    @property
    def layers(self) -> list[str]:
        """The matrices of the blocks, by their names in PyTorch."""
        return [
            theirs for ours, (theirs, _) in self.places.items() if _is_layer(ours, self.model.get_parameter(theirs))
        ]

    def from_file(self, path: Path) -> Made:
        """What a file holds, for both programs."""
        with read_gguf(path) as file:
            blocks = [info for name, info in file.tensors.items() if _is_layer(name, info)]
            bits = sum(8 * info.n_bytes for info in blocks) / sum(int(np.prod(info.shape)) for info in blocks)
        return Made(self.model_in(path), path, path.stat().st_size, bits)


def _is_layer(name: str, w: Any) -> bool:
    return name.startswith("blk.") and len(w.shape) == 2


def _places(model: Any) -> dict[str, tuple[str, Any]]:
    """By the name in the file: the parameter's name, and which of its rows stands where, as rope pairs neighbours."""
    named, config, found = gguf_names(model), model.config, {}
    for theirs in model.state_dict():
        rows: Any = slice(None)
        if heads := {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}.get(theirs.split(".")[-2]):
            count = getattr(config, heads)
            rows = rope_order(count, len(model.get_parameter(theirs)) // count)
        found[named(theirs)] = theirs, rows
    return found


def some(windows: np.ndarray, count: int) -> np.ndarray:
    """So many of the windows, spread evenly; all, if there are no more."""
    if count >= len(windows):
        return windows
    return windows[np.linspace(0, len(windows) - 1, count).astype(int)]


def digest(data: bytes) -> str:
    """The first 12 hexadecimal digits of the SHA-256."""
    return hashlib.sha256(data).hexdigest()[:12]
