"""Write ``weights.bump`` and ``config.json`` from a GGUF file: streamed, atomic, deterministic, nothing dequantized."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

import numpy as np

from ...core.errors import MiniquantError, WriteError
from ...core.files import atomic_write
from ..gguf.read import GGUFFile, padded, read_gguf
from ..gguf.types import GGMLType
from .config import NAME, addressed_path, belongs_to, config_of, config_path, config_text, is_addressed
from .types import ALIGNMENT, BUMP_TYPES, COUNT, HEADER, BumpConfig, BumpType, Header, Part, n_parts, parts, places

PIECE = 2**20  # bytes copied at once
LEFT = 86400  # seconds after which a config that no weights belong to was left by a killed writer


def write_bump(source: str | os.PathLike[str], path: str | os.PathLike[str]) -> BumpConfig:
    """Write the model of a GGUF file as a bump file, with its ``config.json`` beside it; return the config.

    The blocks are copied as they are, a megabyte at a time. Whenever the machine stops, the folder holds a model that
    loads, the old one or the new one: the new config is first written under a name made from the weights' checksum,
    where the reader finds it until ``config.json`` is replaced as well. Then it is removed.

    Raises ``MiniquantError`` for a model that the layout cannot hold, down to the last tensor and key; ``WriteError``
    if a file cannot be written, or if the folder's ``config.json`` belongs to something else.
    """
    target = os.fsdecode(path)
    with read_gguf(source) as file:
        config = config_of(file)
        found = _matched(file, config)
        types = [kind for _, kind in found]
        _check_target(file.path, target)
        before, after = _checksum_of(target), b""
        try:
            with atomic_write(target) as out:
                after = _write(out, file, found, types)
                out.seek(0)
                out.write(config.header(after))
                text = config_text(config, after, os.path.basename(target))
                with atomic_write(addressed_path(target, after)) as beside:  # 1. the new config, under its own name
                    beside.write(text)
            #                                                                  2. the new weights: they find it there
        except BaseException:
            _forget(target, after if after != before else b"")
            raise
        with atomic_write(config_path(target)) as beside:  #                   3. the name that readers expect
            beside.write(text)
        _forget(target, before, after)
    return config


def _checksum_of(target: str) -> bytes:
    """The checksum in the header of the bump file that is there; empty if there is none."""
    try:
        with open(target, "rb") as file:
            head = file.read(HEADER.size)
    except OSError:
        return b""
    return Header._make(HEADER.unpack(head)).checksum if len(head) == HEADER.size else b""


def _forget(target: str, *checksums: bytes) -> None:
    """Remove the addressed configs of these weights, and those that killed writers left days ago."""
    folder, own = os.path.dirname(target) or ".", {addressed_path(target, checksum) for checksum in checksums}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_addressed(entry.name) and belongs_to(entry.path) is not None:
                path = os.path.join(os.path.dirname(target), entry.name)
                if path in own or time.time() - entry.stat().st_mtime > LEFT:
                    with suppress(OSError):
                        os.unlink(path)


def left_behind(source: str | os.PathLike[str]) -> list[str]:
    """The metadata keys of a GGUF file that a bump file has no place for, in their order: name, tokenizer and so on."""
    with read_gguf(source) as file:
        taken = {"general.architecture", "general.alignment", "tokenizer.ggml.bos_token_id"}
        taken.add("tokenizer.ggml.eos_token_id")
        own = f"{file.metadata.get('general.architecture')}."
        return [key for key in file.metadata if key not in taken and not key.startswith(own)]


def _check_target(source: str | None, target: str) -> None:
    same = source is not None and os.path.realpath(source) == os.path.realpath(target)
    if os.path.basename(target) == NAME or same:
        raise WriteError(f"cannot write {target}: that name is taken by the source or by {NAME}; give another")
    beside = config_path(target)
    if not os.path.exists(beside):
        return
    owner = belongs_to(beside)
    if owner is None:
        raise WriteError(f"cannot write {beside}: the one there was not written by to-bump; choose another folder")
    if owner != os.path.basename(target) and os.path.exists(os.path.join(os.path.dirname(beside), owner)):
        raise WriteError(f"cannot write {beside}: it belongs to {owner}; a bump file needs a folder of its own")


def _matched(file: GGUFFile, config: BumpConfig) -> list[tuple[Part, BumpType]]:
    """Every part of the layout with its type; every tensor of the file used once, or an error."""
    if n_parts(config.architecture, config.layers, config.tied) > 8 * len(file.tensors) + 8:
        raise _refuse(file, f"{config.layers} layers cannot be made of {len(file.tensors)} tensors")
    left, found = dict.fromkeys(file.tensors), []
    for part in parts(config):
        kinds = set()
        for source in part.sources:
            if source not in file.tensors and not part.optional:
                raise _refuse(file, f"the tensor {source!r} is missing; {part.name} is made of it")
            if source in file.tensors:
                left.pop(source)
                kinds.add(_checked(file, source, part))
        found.append((part, kinds.pop() if kinds else BumpType.FP32))
    if left:
        listed = ", ".join(repr(name) for name in list(left)[:3]) + (", …" if len(left) > 3 else "")
        raise _refuse(file, f"the layout has no place for {listed}; left out, the model would not be the same")
    return found


def _checked(file: GGUFFile, source: str, part: Part) -> BumpType:
    info = file.tensors[source]
    length = part.shape[0] // len(part.sources)
    expected = (length, *part.shape[1:])
    if info.shape != expected:
        raise _refuse(file, f"{source!r} has shape {info.shape}, expected {expected}")
    if len(expected) == 1 and info.dtype != GGMLType.F32:
        raise _refuse(file, f"{source!r} is {info.dtype.name}; norms and biases are F32 in a bump file")
    if info.dtype not in BUMP_TYPES:
        known = ", ".join(kind.name for kind in BUMP_TYPES if kind != GGMLType.Q8_K)  # which no file of weights is in
        raise _refuse(
            file, f"{source!r} is {info.dtype.name}, for which bump has no code; export the GGUF in one of {known}"
        )
    return BUMP_TYPES[info.dtype]


def _refuse(file: GGUFFile, message: str) -> MiniquantError:
    return MiniquantError(f"{file.label} cannot become a bump file: {message}")


def _write(out: BinaryIO, file: GGUFFile, found: list[tuple[Part, BumpType]], types: list[BumpType]) -> bytes:
    """Everything after the header; returns its SHA-256."""
    digest = hashlib.sha256()

    def put(data: bytes | memoryview) -> None:
        digest.update(data)
        out.write(data)

    out.write(bytes(HEADER.size))
    put(COUNT.pack(len(types)) + bytes(types))
    end = HEADER.size + COUNT.size + len(types)
    for (part, _), tensor in zip(found, places([part for part, _ in found], types)):
        put(bytes(tensor.offset - end))
        for piece in _pieces(file, part):
            put(piece)
        end = tensor.offset + tensor.n_bytes
    put(bytes(padded(end, ALIGNMENT) - end))
    return digest.digest()


def _pieces(file: GGUFFile, part: Part) -> Iterator[bytes | memoryview]:
    for source in part.sources:
        if source not in file.tensors:
            left = 4 * part.shape[0] // len(part.sources)  # a bias of zeros, float32
            while left:
                yield bytes(min(left, PIECE))
                left -= min(left, PIECE)
            continue
        raw = file.raw(source)
        for start in range(0, len(raw), PIECE):
            yield np.ascontiguousarray(raw[start : start + PIECE]).data
