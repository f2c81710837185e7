"""Open a bump file: everything checked, nothing loaded."""

from __future__ import annotations

import hashlib
import mmap
import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from ...core.errors import FormatError, MiniquantError, QuantizationError
from ...core.reading import Source
from ...core.slices import Slices
from ..file import TensorFile
from ..gguf.codecs import decode
from ..gguf.read import padded
from ..tensor import TensorInfo
from .config import addressed_path, config_label, read_config
from .tokenizer import TOKENIZER, tokenizer_path
from .types import (
    ARCHITECTURES,
    COUNT,
    HEADER,
    MAGIC,
    OFFSETS,
    VERSION,
    BumpType,
    Header,
    parts,
    places,
)

PIECE = 2**20  # bytes hashed at once: whole pages
PATIENCE = 5  # attempts to open a file that another program keeps replacing


def open_bump(source: Source, config: Source | None = None) -> BumpFile:
    """Open a bump file and check all of it, with its ``config.json``; the tensors wait until they are asked for.

    source: a path, or the file's bytes. config: the path or the bytes of the ``config.json`` that was written with it;
    may be left out if it lies beside the file, and must be given for bytes.

    Raises ``FormatError`` for a malformed file or one that does not fit its ``config.json``, ``OSError`` for one that
    cannot be opened.
    """
    if isinstance(source, bytes | bytearray | memoryview | Slices):
        return BumpFile(source, config)
    for _ in range(PATIENCE):
        before = os.stat(source)
        try:
            return BumpFile(source, config)
        except FormatError:
            after = os.stat(source)
            if (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns):
                raise  # else another program replaced it meanwhile: weights of before, config.json of after
    return BumpFile(source, config)


class BumpFile(TensorFile[BumpType]):
    """An open bump file, usable in a ``with`` block: one mapping, in which every tensor has its place.

    ``header`` and ``config`` say what model it is, ``tensors`` maps names to ``TensorInfo``. The checksum is that of
    the mapping itself, whatever file the path names by now; no piece of it stays in memory for that.
    """

    version = VERSION

    def __init__(self, source: Source, config: Source | None = None) -> None:
        super().__init__(source, HEADER.size)
        self.data_start = 0  # offsets count from the file's start
        self.header = Header._make(HEADER.unpack(self._bytes(0, HEADER.size)))
        self._check_header()
        (count,), _ = self._take(COUNT.format, HEADER.size, "dtype table: count")
        self.beside = read_config(source, self.header.checksum, config)
        self.config = self.beside.config
        self.alignment = self.config.alignment
        self._check_config(self.beside.checksum, config_label(source, config))
        types = self._read_types(count)
        self.metadata = {key: value for key, value in self.config._asdict().items() if value is not None}
        self.tensors = self._placed(types)
        self._check_padding(len(types))
        self._check_placeholders()
        self._check_sum()

    @property
    def architecture(self) -> str:
        """The model's: llama or gpt2."""
        return self.config.architecture

    def tensor(self, name: str) -> np.ndarray:
        """A tensor decoded: float32 in its shape, a fresh array."""
        info, raw = self._info(name), self.raw(name)
        w = decode(raw, info.dtype.blocks).reshape(info.shape)
        return w if w.flags.writeable else w.copy()  # F32 is still the file

    def entry_place(self, name: str) -> tuple[int, int] | None:
        """A tensor's byte in the table of types."""
        at = HEADER.size + COUNT.size + list(self.tensors).index(name)
        return at, at + 1

    def tokenizer(self) -> bytes:
        """The text of the ``tokenizer.json`` that belongs to the model.

        Raises ``MiniquantError`` if there is none, ``FormatError`` if the one beside the file is another.
        """
        digest = self.beside.tokenizer
        if digest is None or self.path is None:
            raise MiniquantError(
                f"{self.label} has no tokenizer beside it: the GGUF file that it was made from had none, or one that "
                "to-bump does not know; miniquant to-bump says so when it writes the file"
            )
        for path in (tokenizer_path(self.path), addressed_path(self.path, digest, TOKENIZER)):
            with suppress(OSError):
                text = Path(path).read_bytes()
                if hashlib.sha256(text).digest() == digest:
                    return text
        raise FormatError(
            "it is missing, or not the one that was written with these weights; run to-bump again",
            path=tokenizer_path(self.path),
            field=TOKENIZER,
            offset=0,
        )

    # -- the parts of the format, in their order

    def _check_header(self) -> None:
        header = self.header
        self._expect("magic", header.magic == MAGIC, f"found {header.magic!r}, a bump file begins with {MAGIC!r}")
        self._expect("version", header.version == VERSION, f"found {header.version}, this reader knows {VERSION}")
        known = ", ".join(f"{code} ({name})" for code, name in ARCHITECTURES.items())
        found = f"found {header.model_type}; there are {known}"
        self._expect("model_type", header.model_type in ARCHITECTURES, found)
        for name in Header._fields[3:9]:
            self._expect(name, getattr(header, name) > 0, "found 0; a model has some of each")
        self._expect("reserved", not any(header.reserved), "these 32 bytes are zeros")

    def _read_types(self, count: int) -> list[BumpType]:
        at = HEADER.size + COUNT.size
        config, expected = self.config, self.config.n_parts
        if count != expected:
            raise self._error(
                f"found {count}; {config.architecture} with {config.layers} layers has {expected} tensors in the "
                f"layout {config.layout!r} with tie_word_embeddings={config.tied}".lower(),
                "dtype table: count",
                HEADER.size,
            )
        self._need(at, count, "dtype table")
        types = []
        for index, code in enumerate(self._bytes(at, at + count)):
            if code >= len(BumpType) or BumpType(code).ggml is None:
                known = ", ".join(f"{kind.value} ({kind.name})" for kind in BumpType if kind.ggml is not None)
                raise self._error(
                    f"found {code}, for which no block is described; there are {known}",
                    f"dtype table: tensor {index}",
                    at + index,
                )
            types.append(BumpType(code))
        return types

    def _check_config(self, checksum: bytes | None, label: str) -> None:
        header, config = self.header, self.config
        pairs = {
            "model_type": config.model_type,
            "num_layers": config.layers,
            "vocab_size": config.vocab,
            "embed_dim": config.embed,
            "context_len": config.context,
            "num_heads": config.heads,
            "head_dim": config.head_dim,
            "checksum": header.checksum if checksum is None else checksum,  # C-Kernel-Engine's config.json has none
        }
        for name, expected in pairs.items():
            found = getattr(header, name)
            shown = [f"{v.hex()[:16]}…" if isinstance(v, bytes) else v for v in (found, expected)]
            self._expect(name, found == expected, f"found {shown[0]}, and {label} belongs to {shown[1]}")
        if config.heads % config.kv_heads:
            raise self._error(
                f"{config.heads} heads cannot share {config.kv_heads} key-value heads (config.json)",
                "header.num_heads",
                OFFSETS["num_heads"],
            )
        names = ("aligned_embed_dim", "aligned_head_dim", "aligned_context")
        for name, dim, expected in zip(names, (config.embed, config.head_dim, config.context), config.aligned_dims):
            found = getattr(header, name)
            self._expect(name, found == expected, f"found {found}; for {dim} this layout has {expected}")

    def _placed(self, types: list[BumpType]) -> dict[str, TensorInfo[BumpType]]:
        found, end = {}, HEADER.size + COUNT.size + len(types)
        listed = list(parts(self.config))
        for index, (part, kind) in enumerate(zip(listed, types)):
            if len(part.shape) == 1 and kind != BumpType.FP32:
                raise self._error(
                    f"{part.name} is {kind.name}; norms and biases are FP32",
                    f"dtype table: tensor {index}",
                    HEADER.size + COUNT.size + index,
                )
        try:
            for tensor in places(self.config, types):
                if tensor.offset + tensor.n_bytes > self.n_bytes:
                    raise self._error(
                        f"its {tensor.n_bytes} bytes end outside the file of {self.n_bytes}; the file is truncated, "
                        "or a size in the header or in config.json is wrong",
                        f"tensor {tensor.name!r}",
                        tensor.offset,
                    )
                found[tensor.name], end = tensor, tensor.offset + tensor.n_bytes
        except QuantizationError as error:
            index = len(found)
            raise self._error(
                f"{listed[index].name}: {error}", f"dtype table: tensor {index}", HEADER.size + COUNT.size + index
            ) from None
        if self.n_bytes != padded(end, self.alignment):
            raise self._error(
                f"the file has {self.n_bytes} bytes, its tensors end at {padded(end, self.alignment)}", "end", end
            )
        return found

    def _check_padding(self, count: int) -> None:
        end, before = HEADER.size + COUNT.size + count, "the dtype table"
        for name, start in [*((t.name, t.offset) for t in self.tensors.values()), ("", self.n_bytes)]:
            if any(self._bytes(end, start)):
                raise self._error("these bytes are zeros", f"padding after {before}", end)
            if name:
                end, before = start + self.tensors[name].n_bytes, repr(name)

    def _check_placeholders(self) -> None:
        """A llama in C-Kernel-Engine's layout has zeros for positions and for a bias of its last norm."""
        for name in ("position_embd", "output_norm_beta") if self.config.layout == "ckernel" else ():
            raw, start = self.raw(name), self.tensors[name].offset
            for at in range(0, len(raw), PIECE):
                if raw[at : at + PIECE].any():
                    raise self._error("these bytes are zeros in a llama", f"tensor {name!r}", start)

    def _check_sum(self) -> None:
        digest, mapping = hashlib.sha256(), getattr(self._data, "obj", None)
        for start in range(0, self.n_bytes, PIECE):
            end = min(start + PIECE, self.n_bytes)
            digest.update(self._bytes(max(start, HEADER.size), end))
            if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                mapping.madvise(mmap.MADV_DONTNEED, start, end - start)  # else all of it would count as memory in use
        found = digest.digest()
        both = [digest.hex()[:16] for digest in (self.header.checksum, found)]
        message = f"found {both[0]}…, the bytes behind the header give {both[1]}…; something in the file has changed"
        self._expect("checksum", found == self.header.checksum, message)

    def _expect(self, name: str, right: bool, message: str) -> None:
        if not right:
            raise self._error(message, f"header.{name}", OFFSETS[name])
