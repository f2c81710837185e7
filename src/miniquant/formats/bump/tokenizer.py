"""``tokenizer.json`` beside a bump file: the tokenizer of a GGUF file, as the ``tokenizers`` package reads it.

Two kinds go through: byte-level BPE (``tokenizer.ggml.model`` is ``gpt2``), whose merges are in the GGUF file, and
SentencePiece (``llama``), which has a score for each token: the merges are every cut of a token into two others, those
of the highest score first.

Source: ``llama-vocab.cpp`` for the metadata and its defaults; the format is that of the ``tokenizers`` package.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import MiniquantError
from ..gguf.pre_tokenizers import PRE_TOKENIZERS

TOKENIZER = "tokenizer.json"
TOKENS = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"}  # these are in config.json, too
KEYS = TOKENS | {  # what ``tokenizer.json`` says
    *(f"tokenizer.ggml.{name}" for name in ("model", "pre", "tokens", "scores", "token_type", "merges")),
    *(f"tokenizer.ggml.{name}" for name in ("unknown_token_id", "add_bos_token", "add_eos_token", "add_space_prefix")),
}
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6  # llama.h, enum llama_token_type
_SPACE = "\u2581"  # how SentencePiece writes a space


def tokenizer_path(path: str | os.PathLike[str]) -> str:
    """Where the ``tokenizer.json`` of a bump file lies: beside it."""
    return os.path.join(os.path.dirname(os.fsdecode(path)), TOKENIZER)


def tokenizer_json(metadata: Mapping[str, Any]) -> bytes | None:
    """The ``tokenizer.json`` that cuts a text as llama.cpp does with this metadata; ``None`` if it has no tokenizer.

    Raises ``MiniquantError`` for a kind of tokenizer, or a rule for words, that is not known here.
    """
    kind = metadata.get("tokenizer.ggml.model")
    if kind is None:
        return None
    if kind not in ("gpt2", "llama"):
        raise MiniquantError(f"its tokenizer is of kind {kind!r:.40}; gpt2 (byte-level BPE) and llama are known")
    found = _Found(metadata)
    parts = _byte_level(found) if kind == "gpt2" else _sentencepiece(found)
    text = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": found.added(),
        "normalizer": parts.normalizer,
        "pre_tokenizer": parts.pre_tokenizer,
        "post_processor": found.ends(parts.begins),
        "decoder": parts.decoder,
        "model": {
            "type": "BPE",
            "dropout": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "vocab": {token: i for i, token in enumerate(found.tokens) if found.kinds[i] != 5},  # 5 is unused
            **parts.model,
        },
    }
    return json.dumps(text, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


class _Parts(NamedTuple):
    """What the two kinds have of their own; ``begins`` says whether a text begins with a token where no key says it."""

    model: dict[str, Any]
    normalizer: dict[str, Any] | None
    pre_tokenizer: dict[str, Any] | None
    decoder: dict[str, Any]
    begins: bool


class _Found:
    """The keys that both kinds have."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self.metadata = metadata
        self.tokens = self.list_of("tokens", str)
        kinds = metadata.get("tokenizer.ggml.token_type")
        self.kinds = [_NORMAL] * len(self.tokens) if kinds is None else self.list_of("token_type", int)
        if not self.tokens or len(self.kinds) != len(self.tokens):
            raise MiniquantError(f"its tokenizer has {len(self.tokens)} tokens and {len(self.kinds)} types of tokens")

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self.metadata.get(f"tokenizer.ggml.{name}", otherwise)

    def list_of(self, name: str, kind: type) -> list[Any]:
        found = self.get(name, ())
        values = found.tolist() if isinstance(found, np.ndarray) else found
        if (
            not isinstance(values, Sequence)
            or isinstance(values, str)
            or not all(isinstance(value, kind) for value in values)
        ):
            raise MiniquantError(f"the key tokenizer.ggml.{name} is no list of {kind.__name__}")
        return list(values)

    def added(self) -> list[dict[str, Any]]:
        """The tokens that are looked for in a text before it is cut: control, unknown, and those of a user."""
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        found = [(i, k) for i, k in enumerate(self.kinds) if k in (_UNKNOWN, _CONTROL, _USER_DEFINED)]
        return [{"id": i, "content": self.tokens[i], **flags, "special": k != _USER_DEFINED} for i, k in found]

    def ends(self, begins: bool) -> dict[str, Any] | None:
        """What is put before a text and after it."""
        first = self.token("bos") if self.get("add_bos_token", begins) else None
        last = self.token("eos") if self.get("add_eos_token", False) else None
        if first is None and last is None:
            return None
        names = {self.tokens[i]: i for i in (first, last) if i is not None}

        def special(i: int | None, sequence: int) -> list[dict[str, Any]]:
            return [] if i is None else [{"SpecialToken": {"id": self.tokens[i], "type_id": sequence}}]

        def around(name: str, sequence: int) -> list[dict[str, Any]]:
            text = {"Sequence": {"id": name, "type_id": sequence}}
            return [*special(first, sequence), text, *special(last, sequence)]

        return {
            "type": "TemplateProcessing",
            "single": around("A", 0),
            "pair": around("A", 0) + around("B", 1),
            "special_tokens": {name: {"id": name, "ids": [i], "tokens": [name]} for name, i in names.items()},
        }

    def token(self, which: str) -> int:
        i = self.get(f"{which}_token_id")
        if type(i) is not int or not 0 <= i < len(self.tokens):
            raise MiniquantError(f"a text gets a {which} token, and tokenizer.ggml.{which}_token_id is {i!r:.40}")
        return i


def _byte_level(found: _Found) -> _Parts:
    rules = {name: (rule, ignoring) for name, rule, ignoring in PRE_TOKENIZERS}
    name = found.get("pre")
    if name not in rules:
        raise MiniquantError(f"its rule for words is {name!r:.40} (tokenizer.ggml.pre); known are {', '.join(rules)}")
    rule, ignore_merges = rules[name]
    merges = [merge.split(" ", 1) for merge in found.list_of("merges", str)]
    if not all(len(merge) == 2 for merge in merges):
        raise MiniquantError("a merge in tokenizer.ggml.merges is no pair of tokens")
    model = {"unk_token": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": ignore_merges}
    decoder = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    steps = [{"trim_offsets": True, **step} if step["type"] == "ByteLevel" else step for step in rule]
    words = steps[0] if len(steps) == 1 else {"type": "Sequence", "pretokenizers": steps}
    return _Parts({**model, "merges": merges}, None, words, decoder, name == "llama-bpe")


def _sentencepiece(found: _Found) -> _Parts:
    scores = found.list_of("scores", float)
    if len(scores) != len(found.tokens):
        raise MiniquantError(f"its tokenizer has {len(found.tokens)} tokens and {len(scores)} scores")
    if found.get("precompiled_charsmap") is not None:
        raise MiniquantError("its tokenizer changes a text by tokenizer.ggml.precompiled_charsmap, which is not known")
    score = {t: s for t, s, k in zip(found.tokens, scores, found.kinds) if k in (_NORMAL, _USER_DEFINED)}
    pairs = [
        (-score[token], -at, token[:at], token[at:])
        for token in score
        for at in range(1, len(token))
        if token[:at] in score and token[at:] in score
    ]
    unknown = found.get("unknown_token_id", found.kinds.index(_UNKNOWN) if _UNKNOWN in found.kinds else None)
    model = {
        "unk_token": found.tokens[unknown] if unknown is not None else None,
        "fuse_unk": True,
        "byte_fallback": _BYTE in found.kinds,
        "ignore_merges": False,
        "merges": [list(pair[2:]) for pair in sorted(pairs)],
    }
    prefix = bool(found.get("add_space_prefix", True))
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE}
    steps = [{"type": "Prepend", "prepend": _SPACE}] * prefix + [spaces]
    back: list[dict[str, Any]] = [{"type": "Replace", "pattern": {"String": _SPACE}, "content": " "}]
    back += [{"type": "ByteFallback"}, {"type": "Fuse"}]
    back += [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] * prefix
    normalizer, decoder = {"type": "Sequence", "normalizers": steps}, {"type": "Sequence", "decoders": back}
    return _Parts(model, normalizer, None, decoder, True)
