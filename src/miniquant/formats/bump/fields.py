"""Every byte of a bump file has a name: header, table of types, tensors, padding.

The names and shapes of the tensors need the ``config.json`` beside the file; without it, header and types are named.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from ...core.errors import FormatError, QuantizationError
from ...core.reading import Source, path_of
from ...core.slices import Bytes
from ..field import Decoder, Field, Member, Number, Text
from ..gguf.fields import tensor_values
from ..gguf.read import padded
from ..walk import MAGIC_FIELD, Walk, cut_short, padding
from .config import ConfigError, read_config
from .read import open_bump
from .types import COUNT, HEADER, OFFSETS, SIZES, BumpConfig, BumpType, parts, places

EXPLAINED = {
    "magic": "says which format this is: eight letters, in reading order",
    "version": "the version of the format",
    "model_type": "1 is a llama; 2, a gpt2, and 3, a qwen2, are this course's",
    "num_layers": "how many transformer layers",
    "vocab_size": "how many tokens",
    "embed_dim": "the width of the model",
    "context_len": "the longest sequence",
    "num_heads": "how many attention heads",
    "head_dim": "the width of a head, often embed_dim / num_heads",
    "aligned_embed_dim": "embed_dim, rounded up: rows of 64 bytes",
    "aligned_head_dim": "head_dim, likewise",
    "aligned_context": "context_len, likewise",
    "checksum": "SHA-256 of everything behind the header",
    "reserved": "zeros, for later versions",
}


def bump_fields(data: Bytes, source: Source, config_json: Source | None = None) -> Iterator[Field]:
    """The fields of a bump file, as far as its structure carries.

    data: the whole file. source, config_json: as ``open_bump`` takes them
    """
    walk = Walk(data)
    decoders = {8: Number("<Q"), 4: Number("<I"), 32: Decoder()}
    try:
        for name, size in SIZES.items():
            decoder = Text() if name == "magic" else decoders[size]
            field = MAGIC_FIELD if name == "magic" else f"header.{name}"
            yield walk.take(field, size, "header", decoder, EXPLAINED[name])
        count = walk.take(
            "dtype table: count", COUNT.size, "dtype", Number("<I"), "how many tensors, a byte for each follows"
        )
        yield count
        config = _config(data, source, config_json)
        asked = islice(parts(config), count.value + 1) if config and count.value < data.size else ()
        names = [part.name for part in asked]  # config.json may claim billions of layers
        codes = []
        for index in range(count.value):
            name = repr(names[index]) if index < len(names) else f"tensor {index}"
            what = "how its values are stored, in bump's own numbers"
            yield (code := walk.take(f"type of {name}", 1, "dtype", Member(BumpType, "<B"), what))
            codes.append(_described(*bytes(code.raw)))
    except EOFError:
        return
    if config is not None and len(codes) == len(names):
        yield from _tensors(data, walk.at, config, codes)


def _described(code: int) -> BumpType | None:
    """The type that a byte of the table names, if its blocks are described."""
    kind = BumpType(code) if code < len(BumpType) else None
    return kind if kind is not None and kind.ggml is not None else None


def _tensors(data: Bytes, end: int, config: BumpConfig, kinds: list[BumpType | None]) -> Iterator[Field]:
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return
    empty = {part.name for part in parts(config) if part.optional}
    zeros = f"zeros up to the next multiple of {config.alignment}"
    before = "the dtype table"
    try:
        for tensor in places(config, known):
            yield from padding(f"padding after {before}", data, end, tensor.offset, zeros)
            stop = min(tensor.offset + tensor.n_bytes, data.size)
            if stop <= tensor.offset:
                return
            raw, what = data[tensor.offset : stop], tensor.dtype.description
            if tensor.name in empty and not np.asarray(raw).any():
                absent = "a bias" if len(tensor.shape) == 1 else "positions"
                what = f"zeros: the place of {absent} that the model does not have"
            what += cut_short(stop - tensor.offset, tensor.n_bytes)
            decoder = tensor_values(tensor.dtype.blocks, tensor.shape)
            yield Field(f"tensor {tensor.name!r}: data", tensor.offset, stop, "values", what, raw, decoder)
            end, before = stop, repr(tensor.name)
    except QuantizationError:
        return
    yield from padding(f"padding after {before}", data, end, padded(end, config.alignment), zeros)


def _config(data: Bytes, source: Source, config_json: Source | None) -> BumpConfig | None:
    at = OFFSETS["checksum"]
    try:
        return read_config(source, bytes(data[at : at + 32]), config_json).config
    except FormatError:
        return None


def check_bump(source: Source, config_json: Source | None = None) -> None:
    """Raise what the reader raises; an error in ``config.json`` as one that begins after the table of types."""
    try:
        open_bump(source, config_json).close()
    except ConfigError as error:
        message = str(error).removeprefix(f"{error.path}: ")
        raise FormatError(message, path=path_of(source), field="config.json", offset=HEADER.size + COUNT.size) from None
