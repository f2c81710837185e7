"""The tokenizer of a Hugging Face folder in llama.cpp's terms: byte-level BPE (``bpe``) or SentencePiece.

Source: ``llama-vocab.cpp`` for the keys; ``tokenizer.json`` as the ``tokenizers`` library writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import FormatError
from ...formats.safetensors.read import read_text
from .added import (
    CONTROL,
    NORMAL,
    UNUSED,
    Parts,
    add_token,
    check_decoder,
    check_overlaps,
    optional,
    read_entries,
    read_vocabulary,
)
from .bpe import byte_symbols, from_byte_level, from_lists, read_merges
from .config import Config
from .sentencepiece import from_merges, from_model

_ROLES = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}  # theirs, ours


class TokenizerKeys(NamedTuple):
    """The keys ``tokenizer.*`` of a GGUF file, and what there is to say about texts that get other tokens."""

    metadata: dict[str, Any]
    notes: tuple[str, ...]


def read_tokenizer(folder: Path, config: Config, vocabulary: int) -> TokenizerKeys:
    """The tokenizer of a folder, for a model with ``vocabulary`` rows in its embedding.

    A row without a token gets one of type UNUSED, named [PAD7] after its number. Raises ``FormatError`` for a tokenizer
    that llama.cpp would run differently, and for one with tokens beyond the model's.
    """
    about = Config(folder / "tokenizer_config.json", optional(folder / "tokenizer_config.json"))
    if (folder / "tokenizer.json").exists():
        parts = _from_json(folder / "tokenizer.json", about)
    elif (folder / "tokenizer.model").exists():
        parts = from_model(folder, about, config)
    elif (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
        parts = from_lists(folder, about, config)
    else:
        raise FormatError("no tokenizer.json, no tokenizer.model, and no vocab.json with merges.txt in it", path=folder)
    check_decoder(about, parts)
    special, named = _special_ids(folder, about, config, parts, vocabulary)
    check_overlaps(parts, named)
    tokens, kinds = _tokens(parts, named, vocabulary)
    first, last = _ends(about, parts, special)
    scores = {} if parts.scores is None else {"tokenizer.ggml.scores": [parts.scores.get(name, 0.0) for name in tokens]}
    metadata = {
        **parts.keys,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        **scores,
        **{f"tokenizer.ggml.{_ROLES[role]}_token_id": i for role, i in special.items()},
        "tokenizer.ggml.add_bos_token": first,
        "tokenizer.ggml.add_eos_token": last,
        **_chat_template(folder, about),
    }
    return TokenizerKeys(metadata, parts.notes)


# ---- tokenizer.json --------------------------------------------------------------------------------------------------


def _from_json(path: Path, about: Config) -> Parts:
    found = Config(path)
    model = found.get("model")
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
        kind = model.get("type") if isinstance(model, dict) else model
        raise found.error(
            "model",
            f"found {kind!r:.40}; this converter knows BPE, of bytes or with byte_fallback (SentencePiece), and "
            "llama.cpp would cut texts in another way",
        )
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            raise found.error(f"model.{key}", f"found {model[key]!r:.40}, which llama.cpp does not have")
    added: dict[str, int] = {}
    ids = read_vocabulary(found, "model.vocab", model.get("vocab"))
    entries = read_entries(found, "added_tokens")
    for entry in entries:
        add_token(found, "added_tokens", ids, added, entry, entry.get("id"))
    late = {entry["content"] for entry in entries if entry.get("normalized")}
    merges = read_merges(path, model.get("merges"), ids)
    parts = Parts(path, ids, {}, added, byte_symbols(), late, ends=_template(found))
    if model.get("byte_fallback"):
        return from_merges(found, model, about, parts, merges)
    return from_byte_level(found, model, parts, merges)


def _template(found: Config) -> tuple[str | None, str | None]:
    """The tokens before and after a text, from the post-processor."""
    rule = found.get("post_processor")
    steps = rule.get("processors") if isinstance(rule, dict) and rule.get("type") == "Sequence" else [rule]
    ends: tuple[str | None, str | None] = (None, None)
    for step in steps if isinstance(steps, list) else [steps]:
        kind = step.get("type") if isinstance(step, dict) else step
        if kind in (None, "ByteLevel"):  # ByteLevel trims offsets, no tokens
            continue
        if not isinstance(step, dict) or kind != "TemplateProcessing":
            raise found.error("post_processor", f"found {kind!r:.40}; ByteLevel and TemplateProcessing are known")
        single = step.get("single")
        names = [_piece(piece) for piece in single] if isinstance(single, list) else []
        if names.count(None) != 1 or names.index(None) > 1 or len(names) - names.index(None) > 2 or "" in names:
            raise found.error(
                "post_processor", f"found {single!r:.120}; one token before and one after a text, at most"
            )
        at = names.index(None)
        ends = (names[0] if at else None, names[at + 1] if len(names) > at + 1 else None)
    return ends


def _piece(piece: Any) -> str | None:
    """The token of a template's piece, ``None`` for the text, "" for anything else."""
    if isinstance(piece, dict) and isinstance(token := piece.get("SpecialToken"), dict):
        return token["id"] if isinstance(token.get("id"), str) else ""
    text = piece.get("Sequence") if isinstance(piece, dict) else None
    return None if isinstance(text, dict) and text.get("id") == "A" else ""


def _special_ids(
    folder: Path, about: Config, config: Config, parts: Parts, vocabulary: int
) -> tuple[dict[str, int], set[str]]:
    """The ids of the tokens with a role, by role, and those tokens that the tokenizer itself names so.

    The tokenizer's files have the first word, then config.json. A text must have an end; where it has no beginning of
    its own, the end stands for it, since llama.cpp would take token 11.
    """
    older = Config(folder / "special_tokens_map.json", optional(folder / "special_tokens_map.json"))
    special, named = {}, set()
    for role in _ROLES:
        token = about.get(f"{role}_token", older.get(f"{role}_token"))
        token = token.get("content") if isinstance(token, dict) else token
        token = parts.roles.get(role) if token is None else token
        if token is not None:
            if not isinstance(token, str) or token not in parts.ids:
                raise about.error(f"{role}_token", f"found {token!r:.40}, which {parts.path.name} does not have")
            special[role] = parts.ids[token]
            named.add(token)
            continue
        i = config.get(f"{role}_token_id")
        i = i[0] if isinstance(i, list) and i else i  # llama.cpp finds further ends by their names
        if i is None or i == -1:
            continue
        if type(i) is not int or not 0 <= i < vocabulary:
            raise config.error(f"{role}_token_id", f"found {i!r:.40}, and the model has {vocabulary} tokens")
        special[role] = i
    if "eos" not in special:
        raise about.error("eos_token", "nothing says which token ends a text; llama.cpp would take token 11")
    return {"bos": special["eos"], **special}, named


def _tokens(parts: Parts, named: set[str], vocabulary: int) -> tuple[list[str], list[int]]:
    """The name and the type of every token, by id."""
    missing = [byte for byte, symbol in enumerate(parts.byte_tokens) if symbol not in parts.ids]
    if missing:
        raise FormatError(
            f"the vocabulary has no token for the byte {missing[0]:#04x}: {parts.byte_tokens[missing[0]]!r} is needed",
            path=parts.path,
        )
    tokens, kinds = [f"[PAD{i}]" for i in range(vocabulary)], [UNUSED] * vocabulary
    for token, i in parts.ids.items():
        if "\0" in token:
            raise FormatError(f"{token!r:.40} has a zero character, where llama.cpp's texts end", path=parts.path)
        if i >= vocabulary:
            raise FormatError(f"{token!r:.40} has id {i}, and the model has {vocabulary} tokens", path=parts.path)
        if kinds[i] != UNUSED:
            raise FormatError(f"id {i} is {tokens[i]!r:.40} and {token!r:.40}", path=parts.path)
        kind = CONTROL if token in named else parts.added.get(token, NORMAL)
        tokens[i], kinds[i] = token, parts.kinds.get(token, kind)
    if len(set(tokens)) < vocabulary:
        raise FormatError("a token has the name [PADn], which a row without a token needs", path=parts.path)
    return tokens, kinds


def _ends(about: Config, parts: Parts, special: Mapping[str, int]) -> tuple[bool, bool]:
    """Whether a beginning is put before a text, and an end after it. The template in tokenizer.json says it."""
    for role, token in zip(("bos", "eos"), parts.ends):
        if token is not None and parts.ids.get(token) != special[role]:
            raise FormatError(
                f"a text gets {token!r:.40} where llama.cpp has a place for {role}_token alone",
                path=parts.path,
                field="post_processor",
            )
        said = about.get(f"add_{role}_token")
        if said is not None and said != (token is not None):
            raise about.error(
                f"add_{role}_token",
                f"found {said!r:.40}, and the post-processor of {parts.path.name} does the opposite; make them agree",
            )
    return parts.ends[0] is not None, parts.ends[1] is not None


def _chat_template(folder: Path, about: Config) -> dict[str, str]:
    path = folder / "chat_template.jinja"
    found = read_text(path) if path.exists() else about.get("chat_template")
    if found is None:
        return {}
    if isinstance(found, str) and "\0" not in found:
        return {"tokenizer.chat_template": found}
    if isinstance(found, list) and all(isinstance(t, dict) and isinstance(t.get("template"), str) for t in found):
        named = {str(template.get("name")): template["template"] for template in found}
        return {"tokenizer.chat_template" + ("" if n == "default" else f".{n}"): t for n, t in named.items()}
    raise about.error("chat_template", f"found {found!r:.40}, expected a text")
