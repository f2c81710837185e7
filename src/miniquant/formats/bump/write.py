"""Write ``weights.bump``, ``config.json`` and ``tokenizer.json`` from a GGUF file: streamed, atomic, deterministic.

Nothing is dequantized.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, NamedTuple

import numpy as np

from ...core.errors import FormatError, MiniquantError, WriteError
from ...core.files import atomic_write
from ..gguf.read import GGUFFile, padded, read_gguf
from ..gguf.types import GGMLType
from .config import ADDRESSED, NAME, addressed_path, belongs_to, config_path, config_text, is_addressed, read_config
from .source import config_of, linear_factor
from .tokenizer import KEYS, TOKENIZER, TOKENS, tokenizer_json, tokenizer_path
from .types import BUMP_TYPES, CKERNEL_TYPES, COUNT, FACTORS, HEADER, BumpConfig, BumpType, Header, Part, parts, places

PIECE = 2**20  # bytes copied at once
LEFT = 86400  # seconds after which a config that no weights belong to was left by a killed writer


def write_bump(source: str | os.PathLike[str], path: str | os.PathLike[str], layout: str = "aligned") -> BumpConfig:
    """Write the model of a GGUF file as a bump file, with ``config.json`` and ``tokenizer.json`` beside it.

    layout: "aligned", or "ckernel", that of C-Kernel-Engine   ->   the config. Without a tokenizer that
    ``tokenizer_json`` can express, there is no ``tokenizer.json``.

    The blocks are copied as they are, a megabyte at a time. Whenever the machine stops, the folder holds a model that
    loads, the old one or the new one: what goes beside the weights is first written under names made from checksums,
    where the reader finds it until the plain names are replaced as well. Then it is removed.

    Raises ``MiniquantError`` for a model that the layout cannot hold, down to the last tensor and key; ``WriteError``
    if a file cannot be written, or if the folder's ``config.json`` belongs to something else.
    """
    target = os.fsdecode(path)
    with read_gguf(source) as file:
        config = config_of(file, layout)
        found = _matched(file, config)
        tokenizer = _tokenizer_of(file)
        digest = hashlib.sha256(tokenizer).digest() if tokenizer is not None else None
        old, new = _present(target), _Present(b"", digest)
        ours = _check_target(file.path, target, old, tokenizer is not None)
        try:
            with atomic_write(target) as out:
                new = _Present(_write(out, file, found, config), digest)
                out.seek(0)
                out.write(config.header(new.weights))
                text = config_text(config, new.weights, os.path.basename(target), digest)
                if tokenizer is not None and digest is not None:
                    _put(addressed_path(target, digest, TOKENIZER), tokenizer)  # 1. what goes beside the weights,
                _put(addressed_path(target, new.weights), text)  #                   under names of its own
            #                                                      2. the new weights: they find it there
        except BaseException:
            _forget(*(set(new.addressed(target)) - set(old.addressed(target))))
            raise
        _put(config_path(target), text)  #                         3. the name that readers expect
        if tokenizer is not None:
            _put(tokenizer_path(target), tokenizer)
    if tokenizer is None and ours:
        with suppress(OSError):
            os.unlink(tokenizer_path(target))  # that of the model before
    _forget(*old.addressed(target), *new.addressed(target), *_abandoned(target))
    return config


def _put(path: str, data: bytes) -> None:
    with atomic_write(path) as out:
        out.write(data)


class _Present(NamedTuple):
    """The checksums of the weights and of the tokenizer of the bump file that is there; nothing if there is none."""

    weights: bytes
    tokenizer: bytes | None

    def addressed(self, target: str) -> list[str]:
        """The names under which the files beside those weights may still lie."""
        found = [addressed_path(target, self.weights)] if self.weights else []
        return found + ([addressed_path(target, self.tokenizer, TOKENIZER)] if self.tokenizer else [])


def _present(target: str) -> _Present:
    try:
        with open(target, "rb") as file:
            head = file.read(HEADER.size)
    except OSError:
        return _Present(b"", None)
    if len(head) < HEADER.size:
        return _Present(b"", None)
    weights = Header._make(HEADER.unpack(head)).checksum
    try:
        return _Present(weights, read_config(target, weights).tokenizer)
    except FormatError:
        return _Present(weights, None)


def _forget(*paths: str) -> None:
    """Remove files under addressed names, if a writer of bump files has put them there."""
    for path in paths:
        with suppress(OSError):
            if is_addressed(path):
                os.unlink(path)


def _abandoned(target: str) -> list[str]:
    """The files that killed writers may have left in the folder days ago."""
    folder, found = os.path.dirname(target), []
    with suppress(OSError), os.scandir(folder or ".") as entries:
        for entry in entries:
            if ADDRESSED.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > LEFT:
                found.append(os.path.join(folder, entry.name))
    return found


def _tokenizer_of(file: GGUFFile) -> bytes | None:
    try:
        return tokenizer_json(file.metadata)
    except MiniquantError:
        return None


def left_behind(source: str | os.PathLike[str]) -> tuple[list[str], str]:
    """The metadata keys of a GGUF file that have no place beside a bump file, in their order; and why the tokenizer has
    none, if it has none."""
    with read_gguf(source) as file:
        taken, reason = {"general.architecture", "general.alignment", *TOKENS}, ""
        try:
            if tokenizer_json(file.metadata) is not None:
                taken |= KEYS
        except MiniquantError as error:
            reason = str(error)
        own = f"{file.metadata.get('general.architecture')}."
        return [key for key in file.metadata if key not in taken and not key.startswith(own)], reason


def _check_target(source: str | None, target: str, old: _Present, tokenizer: bool) -> bool:
    """Raises ``WriteError`` for a name that is taken; returns whether a ``tokenizer.json`` there may be removed."""
    same = source is not None and os.path.realpath(source) == os.path.realpath(target)
    if os.path.basename(target) in (NAME, TOKENIZER) or same:
        raise WriteError(f"cannot write {target}: that name is taken, by the source or beside it; give another")
    ours = _is_ours(target, old)
    if tokenizer and not ours and os.path.exists(beside := tokenizer_path(target)):
        raise WriteError(f"cannot write {beside}: the one there was not written by to-bump; choose another folder")
    beside = config_path(target)
    if not os.path.exists(beside):
        return ours
    owner = belongs_to(beside)
    if owner is None:
        raise WriteError(f"cannot write {beside}: the one there was not written by to-bump; choose another folder")
    if owner != os.path.basename(target) and os.path.exists(os.path.join(os.path.dirname(beside), owner)):
        raise WriteError(f"cannot write {beside}: it belongs to {owner}; a bump file needs a folder of its own")
    return ours


def _is_ours(target: str, old: _Present) -> bool:
    """Whether the ``tokenizer.json`` there is the old model's, or the one that a killed writer was about to replace."""
    if old.tokenizer is None:
        return False
    with suppress(OSError):
        if is_addressed(addressed_path(target, old.tokenizer, TOKENIZER)):
            return True
    with suppress(OSError), open(tokenizer_path(target), "rb") as file:
        return hashlib.file_digest(file, "sha256").digest() == old.tokenizer
    return False


def _matched(file: GGUFFile, config: BumpConfig) -> list[tuple[Part, BumpType]]:
    """Every part of the layout with its type; every tensor of the file used once, or an error."""
    if config.n_parts > 8 * len(file.tensors) + 8:
        raise _refuse(file, f"{config.layers} layers cannot be made of {len(file.tensors)} tensors")
    left, found = dict.fromkeys(file.tensors), []
    for part in parts(config):
        kinds = set()
        for source in part.sources:
            if source not in file.tensors and not part.optional and source != FACTORS:  # one factor makes all of them
                raise _refuse(file, f"the tensor {source!r} is missing; {part.name} is made of it")
            if source in file.tensors:
                left.pop(source)
                kinds.add(_checked(file, source, part, config.layout))
        if len(kinds) > 1:
            both = " and ".join(sorted(kind.name for kind in kinds))
            raise _refuse(file, f"{part.name} is made of {' and '.join(part.sources)}, which are {both}, not one type")
        found.append((part, kinds.pop() if kinds else BumpType.FP32))
    if left:
        listed = ", ".join(repr(name) for name in list(left)[:3]) + (", …" if len(left) > 3 else "")
        raise _refuse(file, f"the layout has no place for {listed}; left out, the model would not be the same")
    return found


def _checked(file: GGUFFile, source: str, part: Part, layout: str) -> BumpType:
    info = file.tensors[source]
    types = BUMP_TYPES if layout == "aligned" else CKERNEL_TYPES
    length = part.shape[0] // len(part.sources)
    expected = (length, *part.shape[1:])
    if info.shape != expected:
        raise _refuse(file, f"{source!r} has shape {info.shape}, expected {expected}")
    if len(expected) == 1 and info.dtype != GGMLType.F32:
        raise _refuse(file, f"{source!r} is {info.dtype.name}; norms and biases are F32 in a bump file")
    if info.dtype not in types:
        known = ", ".join(kind.name for kind in types if kind != GGMLType.Q8_K)  # which no file of weights is in
        raise _refuse(
            file, f"{source!r} is {info.dtype.name}, for which bump has no code; export the GGUF in one of {known}"
        )
    return types[info.dtype]


def _refuse(file: GGUFFile, message: str) -> MiniquantError:
    return MiniquantError(f"{file.label} cannot become a bump file: {message}")


def _write(out: BinaryIO, file: GGUFFile, found: list[tuple[Part, BumpType]], config: BumpConfig) -> bytes:
    """Everything after the header; returns its SHA-256."""
    digest, types = hashlib.sha256(), [kind for _, kind in found]

    def put(data: bytes | memoryview) -> None:
        digest.update(data)
        out.write(data)

    out.write(bytes(HEADER.size))
    put(COUNT.pack(len(types)) + bytes(types))
    end = HEADER.size + COUNT.size + len(types)
    for (part, _), tensor in zip(found, places(config, types)):
        put(bytes(tensor.offset - end))
        for piece in _pieces(file, part):
            put(piece)
        end = tensor.offset + tensor.n_bytes
    put(bytes(padded(end, config.alignment) - end))
    return digest.digest()


def _pieces(file: GGUFFile, part: Part) -> Iterator[bytes | memoryview]:
    for source in part.sources:
        if source == FACTORS and source not in file.tensors:
            yield np.full(part.shape, linear_factor(file), np.float32).data
            continue
        if source not in file.tensors:
            left = 4 * math.prod(part.shape) // len(part.sources)  # zeros in its place, float32
            while left:
                yield bytes(min(left, PIECE))
                left -= min(left, PIECE)
            continue
        raw = file.raw(source)
        for start in range(0, len(raw), PIECE):
            yield np.ascontiguousarray(raw[start : start + PIECE]).data
