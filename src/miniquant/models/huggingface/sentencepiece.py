"""SentencePiece tokenizers of kind BPE, as Llama 2 has one, in llama.cpp's terms: the vocabulary ``llama``.

Such a tokenizer writes a space as "▁", cuts a text into characters, and joins two neighbours as long as their sum is a
piece: that of the highest score first, from left to right where two are equal. A character that is no piece becomes the
tokens of its bytes. ``tokenizer.model`` holds the pieces with their scores. ``tokenizer.json`` has a list of merges in
the place of the scores; the score of a piece is then minus the place of its first merge.

Source: ``sentencepiece_model.proto``, ``bpe_model.cc``; ``llm_tokenizer_spm`` in ``llama-vocab.cpp``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import FormatError
from .added import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, Parts, read_listed
from .config import Config

SPACE = "▁"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
OTHER_SPACES = (
    "transformers puts a space before a text only where there is none, and llama.cpp before every text and after every "
    "special token; so a text that begins with a space, or stands after a special token, may get other tokens"
)
AS_SENTENCEPIECE = (
    "without a tokenizer.json, llama.cpp gives the tokens that the sentencepiece package gives; transformers makes "
    "merges of its own from tokenizer.model, and may cut a run of spaces in another way"
)
_PREPEND = {"type": "Prepend", "prepend": SPACE}
_REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
_UNIGRAM, _BPE = 1, 2  # TrainerSpec.ModelType


def _keys(prefix: bool) -> dict[str, Any]:
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.add_space_prefix": prefix,
    }


# ---- tokenizer.json --------------------------------------------------------------------------------------------------


def from_merges(
    found: Config, model: Mapping[str, Any], about: Config, parts: Parts, merges: list[tuple[str, str]]
) -> Parts:
    """Fill in what a BPE with ``byte_fallback`` has; ``parts`` holds what every ``tokenizer.json`` has.

    Raises ``FormatError`` for merges that no scores stand for, and for another treatment of spaces.
    """
    if model.get("ignore_merges"):
        raise found.error("model.ignore_merges", "it is true, and llama.cpp joins characters in every text; say false")
    prefix, notes = _spaces(found, about)
    if parts.late and found.get("normalizer") is not None:
        raise found.error(
            "added_tokens",
            f"{min(parts.late)!r:.40} is normalized, which puts a space before it as well; llama.cpp does not: "
            'say "normalized": false',
        )
    scores = scores_of(found, parts.ids, merges, set(parts.added))
    kinds = dict.fromkeys(BYTES, BYTE)
    if (unknown := model.get("unk_token")) is not None:
        if not isinstance(unknown, str) or unknown not in parts.ids:
            raise found.error("model.unk_token", f"found {unknown!r:.40}, which is not in the vocabulary")
        kinds[unknown] = UNKNOWN
    return parts._replace(scores=scores, keys=_keys(prefix), byte_tokens=BYTES, kinds=kinds, notes=notes)


def _spaces(found: Config, about: Config) -> tuple[bool, tuple[str, ...]]:
    """Whether a text gets a space in front, and what there is to say about it."""
    normalizer, rule = _steps(found, "normalizer", "normalizers"), _steps(found, "pre_tokenizer", "pretokenizers")
    notes: tuple[str, ...] = ()
    if not rule and normalizer in ([_PREPEND, _REPLACE], [_REPLACE]):
        prefix = normalizer[0] == _PREPEND
        if prefix and str(about.get("tokenizer_class")).startswith("LlamaTokenizer"):
            notes = (OTHER_SPACES,)  # from version 5 on, this class has a Metaspace whatever the file says
    elif not normalizer and len(rule) == 1 and _is_metaspace(rule[0]):
        prefix = rule[0].get("prepend_scheme", "always") in ("always", "first")
        notes = (OTHER_SPACES,) if prefix else ()
    else:
        raise found.error(
            "normalizer",
            f"found {found.get('normalizer')!r:.160} with the pre_tokenizer {found.get('pre_tokenizer')!r:.80}; known "
            f"are Prepend and Replace of {SPACE!r} (or Replace alone) without a pre_tokenizer, and a Metaspace that "
            "does not split; llama.cpp changes a text in no other way",
        )
    said = about.get("add_prefix_space")
    if said is not None and said != prefix:
        raise about.error(
            "add_prefix_space", f"found {said!r:.40}, and {found.path.name} does the opposite; make them agree"
        )
    for step in _steps(found, "decoder", "decoders"):
        if not isinstance(step, dict) or step.get("type") not in (
            "Replace",
            "ByteFallback",
            "Fuse",
            "Strip",
            "Metaspace",
        ):
            raise found.error("decoder", f"found {step!r:.80}, which is not SentencePiece's way back to a text")
    return prefix, notes


def _steps(found: Config, key: str, inner: str) -> list[Any]:
    rule = found.get(key)
    steps = rule.get(inner) if isinstance(rule, dict) and rule.get("type") == "Sequence" else [rule]
    return [step for step in steps if step is not None] if isinstance(steps, list) else [steps]


def _is_metaspace(step: Any) -> bool:
    return (
        isinstance(step, dict)
        and step.get("type") == "Metaspace"
        and (step.get("replacement", SPACE), step.get("split", True)) == (SPACE, False)
        and step.get("prepend_scheme", "always") in ("always", "first", "never")
    )


def scores_of(
    found: Config, ids: Mapping[str, int], merges: list[tuple[str, str]], added: set[str]
) -> dict[str, float]:
    """The score of every token that a merge makes: minus the place of its first one.

    Merges join what they name; llama.cpp joins any two neighbours whose sum is a token. Raises ``FormatError`` where
    that is not the same: if merges of one token stand among those of others, or if two neighbours without a merge may
    come to stand side by side. They cannot if the token itself is cut in another way, and the parts of every merge are
    made before it: a cut is right where every two neighbours in it are (van Antwerpen and Neubeck, "So many tokens, so
    little time", 2024).
    """
    first: dict[str, int] = {}
    count: dict[str, int] = {}
    for place, (left, right) in enumerate(merges):
        if left in BYTES or right in BYTES:
            raise found.error("merges", f"merge {place} joins {left!r:.40} and {right!r:.40}, and llama.cpp no bytes")
        whole = left + right
        first.setdefault(whole, place)
        count[whole] = count.get(whole, 0) + 1
        if place - first[whole] != count[whole] - 1:
            raise found.error(
                "merges",
                f"those that make {whole!r:.40} stand among others, and llama.cpp has one score for all of them",
            )
    ranks = {pair: place for place, pair in enumerate(merges)}
    in_order = all(first.get(part, -1) < place for place, pair in enumerate(merges) for part in pair)
    for token in ids:
        for at in range(1, len(token)) if token not in added else ():
            pair = token[:at], token[at:]
            if pair in ranks or any(part in added or (part not in ids and len(part) > 1) for part in pair):
                continue  # a character without a token of its own stands there too, before it becomes bytes
            cut = cut_by(lambda left, right: ranks.get((left, right)), token)
            if len(cut) == 2 or not in_order:
                raise found.error(
                    "merges",
                    f"no merge joins {pair[0]!r:.40} and {pair[1]!r:.40} to the token {token!r:.40}, and llama.cpp "
                    "would; take the folder's tokenizer.model alone, or a tokenizer with every such merge",
                )
            break
    return {token: -float(place) for token, place in first.items()}


def cut_by(rank: Callable[[str, str], float | None], text: str) -> list[str]:
    """Join neighbours in a text, those of the least rank first, until no two of them have one.

    >>> cut_by(lambda left, right: {"ab": 1, "abab": 2}.get(left + right), "ababa")
    ['abab', 'a']
    """
    symbols = list(text)
    while True:
        ranked = ((rank(*pair), at) for at, pair in enumerate(pairwise(symbols)))
        best = min(((r, at) for r, at in ranked if r is not None), default=None)
        if best is None:
            return symbols
        symbols[best[1] : best[1] + 2] = ["".join(symbols[best[1] : best[1] + 2])]


# ---- tokenizer.model -------------------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """An entry of the vocabulary: its text, its score, and its type, with the numbers that llama.cpp took over."""

    text: str
    score: float
    kind: int


def from_model(folder: Path, about: Config, config: Config) -> Parts:
    """What a ``tokenizer.model`` says. Raises ``FormatError`` for one that llama.cpp would run differently."""
    path = folder / "tokenizer.model"
    about.one_of(
        "tokenizer_class",
        ("LlamaTokenizer", "LlamaTokenizerFast"),
        "LlamaTokenizer" if config.get("model_type") == "llama" else None,
    )
    pieces, trainer, normalizer = read_model(path)
    if (kind := trainer.get(3, _UNIGRAM)) != _BPE:
        name = "Unigram" if kind == _UNIGRAM else f"of type {kind}"
        raise FormatError(
            f"this SentencePiece model is {name}, and llama.cpp's llama vocabulary is a BPE; it would cut texts in "
            "another way",
            path=path,
            field="trainer_spec.model_type",
        )
    changes: list[tuple[str, Any, Any]] = [  # what is set, and how it must be set
        ("remove_extra_whitespaces", normalizer.get(4, 1), 0),
        ("precompiled_charsmap", normalizer.get(2, b""), b""),
        ("escape_whitespaces", normalizer.get(5, 1), 1),
    ]
    for key, value, wanted in changes:
        if value != wanted:
            raise FormatError(
                f"found {value!r:.40}, expected {wanted!r}: it changes texts before they are cut, and llama.cpp does "
                "not",
                path=path,
                field=f"normalizer_spec.{key}",
            )
    if trainer.get(24, 0):
        raise FormatError(
            "a space belongs to the word before it, and in llama.cpp to the one after it",
            path=path,
            field="trainer_spec.treat_whitespace_as_suffix",
        )
    ids: dict[str, int] = {}
    for i, piece in enumerate(pieces):
        if piece.text in ids or piece.kind not in (NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE):
            what = "is there twice" if piece.text in ids else f"is of type {piece.kind}, which llama.cpp does not know"
            raise FormatError(f"{piece.text!r:.40} {what}", path=path, field=f"pieces[{i}]")
        ids[piece.text] = i
    kinds = {piece.text: piece.kind for piece in pieces if piece.kind != NORMAL}
    joined = {piece.text: -piece.score for piece in pieces if piece.kind in (NORMAL, USER_DEFINED)}
    for name in BYTES:
        cut = cut_by(lambda left, right: joined.get(left + right), name)
        if len(cut) < 3:
            raise FormatError(f"llama.cpp would join {cut} to the token of a byte", path=path, field="pieces")
    added = {text: kind for text, kind in kinds.items() if kind in (UNKNOWN, CONTROL, USER_DEFINED)}
    prefix = bool(normalizer.get(3, 1))
    if (said := about.get("add_prefix_space")) is not None and said != prefix:
        raise about.error("add_prefix_space", f"found {said!r:.40}, and {path.name} does the opposite; make them agree")
    roles = {}
    for role, field, default in (("unk", 40, 0), ("bos", 41, 1), ("eos", 42, 2), ("pad", 43, len(pieces))):
        i = trainer.get(field, default)
        if isinstance(i, int) and i < len(pieces):  # -1, a large number in this format, says that there is none
            roles[role] = pieces[i].text
    ends: list[Any] = []
    for role in ("bos", "eos"):
        token = about.get(f"{role}_token", roles.get(role)) if about.flag(f"add_{role}_token", role == "bos") else None
        ends.append(token.get("content") if isinstance(token, dict) else token)
    parts = Parts(
        path,
        ids,
        _keys(prefix),
        added,
        BYTES,
        set(),
        scores={piece.text: piece.score for piece in pieces},
        ends=(ends[0], ends[1]),
        kinds=kinds,
        roles=roles,
        notes=(AS_SENTENCEPIECE,),
    )
    read_listed(folder, about, parts)
    return parts


def read_model(path: Path) -> tuple[list[Piece], dict[int, Any], dict[int, Any]]:
    """The pieces of a ``tokenizer.model``, and its trainer's and normalizer's settings by their numbers.

    The file is a message of Protocol Buffers. Raises ``FormatError``, with the byte, for one that is not.
    """
    data = path.read_bytes()
    pieces, trainer, normalizer = [], dict[int, Any](), dict[int, Any]()
    for number, value, start in fields(data, path):
        inner = isinstance(value, bytes)
        if number == 1 and inner:
            one = {field: v for field, v, _ in fields(value, path, start)}
            text, score, kind = one.get(1, b""), one.get(2, b"\0\0\0\0"), one.get(3, NORMAL)
            try:
                pieces.append(Piece(text.decode("utf-8"), struct.unpack("<f", score)[0], int(kind)))
                if not math.isfinite(pieces[-1].score):
                    raise ValueError
            except (AttributeError, TypeError, ValueError, struct.error):
                raise FormatError("this is no piece of a vocabulary", path=path, field=f"byte {start}") from None
        elif number in (2, 3) and inner:
            settings = trainer if number == 2 else normalizer
            settings.update({field: v for field, v, _ in fields(value, path, start)})
    if not pieces:
        raise FormatError("it holds no pieces, so this is no SentencePiece model", path=path)
    return pieces, trainer, normalizer


def fields(data: bytes, path: Path, start: int = 0) -> Iterator[tuple[int, Any, int]]:
    """The fields of a message: number, value (a whole number, or bytes) and the byte of the file where it begins.

    >>> list(fields(b"\\x0a\\x02hi\\x10\\x96\\x01", Path("x")))
    [(1, b'hi', 2), (2, 150, 5)]
    """
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while at < len(data) and shift < 64:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value
        raise FormatError("this is no SentencePiece model", path=path, field=f"byte {start + at}")

    while at < len(data):
        tag = varint()
        begin = at
        value: Any
        if tag & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(tag & 7, -1)
            if tag & 7 == 2:
                size = varint()
                begin = at
            if size < 0 or size > len(data) - at:
                raise FormatError("this is no SentencePiece model", path=path, field=f"byte {start + at}")
            value, at = data[at : at + size], at + size
        yield tag >> 3, value, start + begin
