"""What llama.cpp says while it loads a GGUF file, line by line, and the fields that each line was made from.

llama.cpp writes some 80 lines on the way. Kept are those that depend on the file and on nothing else: no address, no
time, no feature of the machine, no default. Sources: ``llama-model-loader.cpp`` for the lines that begin with
``llama_model_loader``, ``llama-model.cpp`` and ``llama-vocab.cpp`` for those with ``print_info``.

    for line in loading_log("minigpt.gguf"):
        print(line.short, "|", line.made_from, "|", line.where)
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..formats.field import Field
from ..formats.fields import fields
from .llamacpp import LlamaCpp, LlamaCppError


@dataclass(frozen=True)
class LogLine:
    """A line of llama.cpp's log, with the fields of the file that it was made from.

    ``text`` is the line as llama.cpp wrote it, the folder of the file left out; ``made_from`` names the fields in
    words; ``fields`` has them in the order of the file. A complaint has none.
    """

    text: str
    made_from: str
    fields: tuple[Field, ...]

    @property
    def short(self) -> str:
        """The line without the function that wrote it, and with single spaces."""
        return " ".join(self.text.partition(": ")[2].split())

    @property
    def where(self) -> str:
        """Where in the file the fields are: the first byte and the last, and the bytes in between if they are few."""
        if not self.fields:
            return ""
        first, last = self.fields[0].start, self.fields[-1].end - 1
        apart = sum(after.start != before.end for before, after in zip(self.fields, self.fields[1:]))
        if apart:
            return f"{apart + 1} places from byte {first} to {last}"
        raw = b"".join(bytes(part.raw[:8]) for part in self.fields)
        shown = f": {raw.hex(' ')}" if last - first < 8 else ""
        return f"bytes {first} to {last}{shown}"


def loading_log(path: str | os.PathLike[str], vocab_only: bool = False) -> list[LogLine]:
    """What llama.cpp says while it loads a GGUF file, each line with the fields that it was made from.

    Without ``vocab_only`` the file must hold a whole model. A file that llama.cpp refuses gives the lines up to its
    complaint, which is the last one and has no fields. Raises ``LlamaCppError`` if llama.cpp ends its process, and
    ``OSError`` for a file that cannot be opened.
    """
    named = _Named(fields(path))
    try:
        with LlamaCpp(path, vocab_only=vocab_only) as llama:
            log = llama.log
    except LlamaCppError as error:
        if not error.log:
            raise
        log = error.log
    return list(_lines(log.replace(os.fspath(path), Path(path).name), named))


class _Named:
    """The fields of a file by their names."""

    def __init__(self, found: list[Field]) -> None:
        self.fields = {field.name: field for field in found}
        self.numbers = {field.name: i for i, field in enumerate(found)}
        self.all = found
        self.arch = str(self.fields[_ARCH].value) if _ARCH in self.fields else ""

    def get(self, *names: str) -> tuple[Field, ...]:
        """The fields with these names; none if one of them is missing."""
        return tuple(self.fields[name] for name in names) if all(name in self.fields for name in names) else ()

    def infos(self, *parts: str, kind: str = "") -> tuple[Field, ...]:
        """Parts of all tensor infos, such as ``dims``; of those alone whose type llama.cpp calls ``kind``."""
        ends = tuple(f": {part}" for part in parts)
        found = [f for f in self.all if f.category in ("shape", "dtype") and f.name.endswith(ends)]
        return tuple(f for f in found if not kind or getattr(f.value, "name", "").lower() == kind.lower())

    def pair(self, index: int) -> tuple[Field, ...]:
        """Every field of a key with its value."""
        start = self.numbers.get(f"key {index}: length")
        if start is None:
            return ()
        key = self.all[start + 1].name.removesuffix(": key")
        stop = start + 1
        while stop < len(self.all) and self.all[stop].name.startswith(f"{key}: "):
            stop += 1
        return tuple(self.all[start:stop])


_ARCH = "metadata 'general.architecture': value"
_TOKENS = "metadata 'tokenizer.ggml.tokens': elements"
_HYPERPARAMETERS = {  # name in the log: keys without the architecture; the first one that the file has
    "n_ctx_train": ("context_length",),
    "n_embd": ("embedding_length",),
    "n_layer": ("block_count",),
    "n_ff": ("feed_forward_length",),
    "n_head": ("attention.head_count",),
    "n_head_kv": ("attention.head_count_kv", "attention.head_count"),
    "f_norm_eps": ("attention.layer_norm_epsilon",),
    "f_norm_rms_eps": ("attention.layer_norm_rms_epsilon",),
}
_WHOLE = {  # name in the log: fields by their whole names
    "file format": ("header.magic", "header.version"),
    "arch": (_ARCH,),
    "general.name": ("metadata 'general.name': value",),
    "vocab type": ("metadata 'tokenizer.ggml.model': value",),
    "n_vocab": ("metadata 'tokenizer.ggml.tokens': items",),
    "n_merges": ("metadata 'tokenizer.ggml.merges': items",),
    "BOS token": (_TOKENS, "metadata 'tokenizer.ggml.bos_token_id': value"),
    "EOS token": (_TOKENS, "metadata 'tokenizer.ggml.eos_token_id': value"),
    "LF token": (_TOKENS,),
    "max token length": (_TOKENS,),
}

_Origin = tuple[str, tuple[Field, ...]]


def _loaded(found: re.Match[str], named: _Named) -> _Origin:
    return "the version and the counts of the header", named.get("header.version", "header.n_tensors", "header.n_kv")


def _pair(found: re.Match[str], named: _Named) -> _Origin:
    return f"key-value {found[1]}, all of it", named.pair(int(found[1]))


def _count(found: re.Match[str], named: _Named) -> _Origin:
    kinds = named.infos("type", kind=found[1])
    return f"the type of {_infos(len(kinds))}", kinds


def _infos(count: int) -> str:
    return f"{count} tensor info" + "s" * (count != 1)


def _info(found: re.Match[str], named: _Named) -> _Origin:
    name = found[1]
    if name in _WHOLE:
        known = named.get(*_WHOLE[name])
        return ", ".join(field.name for field in known), known
    for key in _HYPERPARAMETERS.get(name, ()):
        if known := named.get(f"metadata '{named.arch}.{key}': value"):
            return known[0].name, known
    if name == "file type":
        known = named.get("metadata 'general.file_type': value")
        kinds = named.infos("type")
        return (known[0].name, known) if known else (f"the type of {_infos(len(kinds))}", kinds)
    if name in ("file size", "model params"):
        parts = ("dims", "type") if name == "file size" else ("dims",)
        known = named.infos(*parts)
        return f"the {' and the '.join(parts)} of {_infos(len(known) // len(parts))}", known
    return "", ()


_RULES: tuple[tuple[str, Callable[[re.Match[str], _Named], _Origin]], ...] = (
    (r"llama_model_loader: loaded meta data with ", _loaded),
    (r"llama_model_loader: - kv +(\d+): ", _pair),
    (r"llama_model_loader: - type +(\w+): ", _count),
    (r"print_info: (.+?) += ", _info),
)
_COMPLAINT = r"\w+: error loading model: "


def _lines(log: str, named: _Named) -> Iterator[LogLine]:
    for text in map(str.rstrip, log.split("\n")):
        if re.match(_COMPLAINT, text):
            yield LogLine(text, "", ())
        for pattern, rule in _RULES:
            if found := re.match(pattern, text):
                made_from, known = rule(found, named)
                if known:
                    yield LogLine(text, made_from, known)
