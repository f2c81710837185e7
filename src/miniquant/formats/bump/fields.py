"""Every byte of a bump file has a name: header, table of types, tensors, padding. What ``gguf_fields`` is for GGUF.

The names and shapes of the tensors need the ``config.json`` beside the file; without it, header and types are named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.errors import FormatError, QuantizationError
from ..field import MAGIC_FIELD, Field, _Walk
from ..gguf.fields import GGUFField, _padding
from ..gguf.read import padded
from .config import config_path, is_addressed, read_config
from .read import open_bump
from .types import ALIGNMENT, COUNT, HEADER, OFFSETS, SIZES, BumpConfig, BumpType, parts, places

_EXPLAINED = {
    "magic": "says which format this is: eight letters, in reading order",
    "version": "the version of the format",
    "model_type": "1 is a llama, 2 this course's gpt2",
    "num_layers": "how many transformer layers",
    "vocab_size": "how many tokens",
    "embed_dim": "the width of the model",
    "context_len": "the longest sequence",
    "num_heads": "how many attention heads",
    "head_dim": "the width of a head: embed_dim / num_heads",
    "aligned_embed_dim": "embed_dim, rounded up: rows of 64 bytes",
    "aligned_head_dim": "head_dim, likewise",
    "aligned_context": "context_len, likewise",
    "checksum": "SHA-256 of everything behind the header",
    "reserved": "zeros, for later versions",
}


@dataclass(frozen=True, repr=False)
class BumpField(GGUFField):
    """A field whose ``form`` may also be ``bump type``."""

    @property
    def value(self) -> Any:
        """As in ``GGUFField``; of a type's byte, the ``BumpType`` where there is one."""
        if self.form != "bump type":
            return super().value
        (code,) = self.raw.tolist()
        return BumpType(code) if code < len(BumpType) else code

    def text(self, start: int | None = None, end: int | None = None) -> str:
        """The value as short text."""
        if self.form != "bump type" or not isinstance(self.value, BumpType):
            return super().text(start, end)
        return f"{self.value.value} ({self.value.name})"


def bump_fields(data: np.ndarray, path: str | None) -> Iterator[Field]:
    """The fields of a bump file, as far as its structure carries; ``path`` says where its ``config.json`` lies."""
    walk = _Walk(data)
    forms = {8: "<Q", 4: "<I", 32: "bytes"}
    try:
        for name, size in SIZES.items():
            form = "text" if name == "magic" else forms[size]
            field = MAGIC_FIELD if name == "magic" else f"header.{name}"
            yield walk.take(field, size, "header", form, _EXPLAINED[name])
        count = walk.take("dtype table: count", COUNT.size, "dtype", "<I", "how many tensors, a byte for each follows")
        yield count
        config = _config(path, data)
        names = [part.name for part in parts(config)] if config and count.value < len(data) else []
        codes = []
        for index in range(count.value):
            name = repr(names[index]) if index < len(names) else f"tensor {index}"
            what = "how its values are stored, in bump's own numbers"
            at = walk.take(f"type of {name}", 1, "dtype", "bump type", what)
            yield BumpField(at.name, at.start, at.end, at.kind, what, at.raw, at.form)
            codes.append(_described(*at.raw.tolist()))
    except EOFError:
        return
    if config is not None and len(codes) == len(names):
        yield from _tensors(data, walk.at, config, codes)


def _described(code: int) -> BumpType | None:
    """The type that a byte of the table names, if its blocks are described."""
    kind = BumpType(code) if code < len(BumpType) else None
    return kind if kind is not None and kind.ggml is not None else None


def _tensors(data: np.ndarray, end: int, config: BumpConfig, kinds: list[BumpType | None]) -> Iterator[Field]:
    if None in kinds:
        return
    zeros = f"zeros up to the next multiple of {ALIGNMENT}"
    before = "the dtype table"
    try:
        for tensor in places(list(parts(config)), kinds):
            yield from _padding(f"padding after {before}", data, end, tensor.offset, zeros)
            stop = min(tensor.offset + tensor.n_bytes, len(data))
            if stop <= tensor.offset:
                return
            raw, what = data[tensor.offset : stop], tensor.dtype.description
            if tensor.name.rpartition(".")[2].startswith("b") and not raw.any():
                what = "zeros: the place of a bias that the model does not have"
            if stop - tensor.offset < tensor.n_bytes:
                what += f"; cut short: {stop - tensor.offset} of {tensor.n_bytes} bytes"
            field = f"tensor {tensor.name!r}: data"
            yield GGUFField(field, tensor.offset, stop, "values", what, raw, tensor.dtype.blocks.name, tensor.shape)
            end, before = stop, repr(tensor.name)
    except QuantizationError:
        return
    yield from _padding(f"padding after {before}", data, end, padded(end, ALIGNMENT), zeros)


def _config(path: str | None, data: np.ndarray) -> BumpConfig | None:
    at = OFFSETS["checksum"]
    try:
        return read_config(path, data[at : at + 32].tobytes())[0] if path is not None else None
    except FormatError:
        return None


def check_bump(path: str | os.PathLike[str]) -> None:
    """Raise what the reader raises; an error in ``config.json`` as one that begins behind the table of types."""
    try:
        open_bump(path).close()
    except FormatError as error:
        if error.path != config_path(path) and not is_addressed(os.path.basename(error.path or "")):
            raise
        message = str(error).removeprefix(f"{error.path}: ")
        raise FormatError(message, path=path, field="config.json", offset=HEADER.size + COUNT.size) from None
