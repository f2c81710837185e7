"""The tokenizer of a Hugging Face folder in llama.cpp's terms: byte-level BPE, as ``gpt2`` and ``llama`` models use it.

A byte-level BPE is a vocabulary, a list of merges, and a rule that cuts a text into words first. That rule is a regular
expression in ``tokenizer.json``; llama.cpp has it compiled in, and a GGUF file names it (``tokenizer.ggml.pre``). So a
rule that is not in the table below has no name, and its tokenizer is refused.

Source: ``llama-vocab.cpp`` for names and rules; ``tokenizer.json`` as the ``tokenizers`` library writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import FormatError
from ...formats.gguf.metadata import Typed, ValueType
from ...formats.safetensors.read import read_object, read_text
from .config import Config

NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5  # llama.h, enum llama_token_type


def _words(numbers: str) -> str:
    """The rule that Llama 3 and Qwen 2 share; they differ in how many digits make a word."""
    return (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + numbers + r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


def _split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _bytes(use_regex: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "use_regex": use_regex}


PRE_TOKENIZERS: list[tuple[str, list[dict[str, Any]], bool]] = [  # llama.cpp's name, the rule, ignore_merges
    ("gpt-2", [_bytes(True)], False),
    ("llama-bpe", [_split(_words(r"\p{N}{1,3}")), _bytes(False)], True),
    ("smaug-bpe", [_split(_words(r"\p{N}{1,3}")), _bytes(False)], False),
    ("qwen2", [_split(_words(r"\p{N}")), _bytes(False)], False),
    ("smollm", [{"type": "Digits", "individual_digits": True}, _bytes(True)], False),
]
MAX_ADDED = 4096  # bytes of an added token: none has a tenth of it, and looking for overlaps takes its square
_ROLES = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}  # theirs, ours


class _Parts(NamedTuple):
    """What both ways of storing a tokenizer hold."""

    path: Path
    ids: dict[str, int]  # token -> id, the added tokens too
    merges: list[str]
    added: dict[str, int]  # token -> type
    late: set[str]  # those of the added tokens that are looked for after the others
    pre: str
    ends: tuple[str | None, str | None] = (None, None)  # the tokens put before and after a text


def read_tokenizer_metadata(folder: Path, config: Config, vocabulary: int) -> dict[str, Any]:
    """The keys ``tokenizer.*`` of a folder's tokenizer, for a model with ``vocabulary`` rows in its embedding.

    A row without a token gets one of type UNUSED, named [PAD7] after its number. Raises ``FormatError`` for a tokenizer
    that llama.cpp would run differently, and for one with tokens beyond the model's.
    """
    about = Config(folder / "tokenizer_config.json", _optional(folder / "tokenizer_config.json"))
    if (folder / "tokenizer.json").exists():
        parts = _from_json(folder / "tokenizer.json")
    elif (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
        parts = _from_lists(folder, about, config)
    else:
        hint = "; tokenizer.model is SentencePiece, no byte-level BPE" if (folder / "tokenizer.model").exists() else ""
        raise FormatError(f"no tokenizer.json, and no vocab.json with merges.txt in it{hint}", path=folder)
    _check_decoder(about, parts)
    special, named = _special_ids(folder, about, config, parts, vocabulary)
    _check_overlaps(parts, named)
    tokens, kinds = _tokens(parts, named, vocabulary)
    first, last = _ends(about, parts, special)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": parts.pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": Typed(parts.merges, ValueType.ARRAY, ValueType.STRING),
        **{f"tokenizer.ggml.{_ROLES[role]}_token_id": i for role, i in special.items()},
        "tokenizer.ggml.add_bos_token": first,
        "tokenizer.ggml.add_eos_token": last,
        **_chat_template(folder, about),
    }


# ---- tokenizer.json --------------------------------------------------------------------------------------------------


def _from_json(path: Path) -> _Parts:
    found = Config(path)
    model = found.get("model")
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
        kind = model.get("type") if isinstance(model, dict) else model
        raise found.error("model", f"found {kind!r:.40}; this converter knows byte-level BPE")
    if model.get("byte_fallback"):
        raise found.error("model.byte_fallback", "this is SentencePiece in a BPE's clothes; byte-level BPE is known")
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            raise found.error(f"model.{key}", f"found {model[key]!r:.40}, which llama.cpp does not have")
    if found.get("normalizer") not in (None, {"type": "Sequence", "normalizers": []}):
        kind = found.get("normalizer")
        kind = kind.get("type") if isinstance(kind, dict) else kind
        raise found.error("normalizer", f"found {kind!r:.40}; llama.cpp changes no text before it cuts it into tokens")
    if isinstance(decoder := found.get("decoder"), dict) and decoder.get("type") != "ByteLevel":
        raise found.error("decoder", f"found {decoder.get('type')!r:.40}, expected ByteLevel")
    added: dict[str, int] = {}
    ids = _vocabulary(found, "model.vocab", model.get("vocab"))
    entries = _entries(found, "added_tokens")
    for entry in entries:
        _add(found, "added_tokens", ids, added, entry, entry.get("id"))
    late = {entry["content"] for entry in entries if entry.get("normalized")}
    merges = _merges(path, model.get("merges"), ids)
    return _Parts(path, ids, merges, added, late, _pre(found, bool(model.get("ignore_merges"))), _template(found))


def _pre(found: Config, ignore_merges: bool) -> str:
    """llama.cpp's name of the rule that cuts a text into words."""
    rule = found.get("pre_tokenizer")
    steps = rule.get("pretokenizers") if isinstance(rule, dict) and rule.get("type") == "Sequence" else [rule]
    plain = [_plain(step) for step in steps] if isinstance(steps, list) else None
    for name, known, ignoring in PRE_TOKENIZERS:
        if plain == known and ignore_merges == ignoring:
            return name
    names = ", ".join(name for name, *_ in PRE_TOKENIZERS)
    more = " with ignore_merges" if ignore_merges else ""
    raise found.error("pre_tokenizer", f"found {rule!r:.200}{more}; the rules known by a name in llama.cpp are {names}")


def _plain(step: Any) -> Any:
    """A step of the rule without what concerns no token, and with the default that may be left out."""
    if not isinstance(step, dict):
        return step
    defaults = {"use_regex": True} if step.get("type") == "ByteLevel" else {}
    return defaults | {key: value for key, value in step.items() if key != "trim_offsets"}


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


# ---- vocab.json and merges.txt ---------------------------------------------------------------------------------------


def _from_lists(folder: Path, about: Config, config: Config) -> _Parts:
    """GPT-2's own two files, which leave the rule to the class of the tokenizer."""
    default = "GPT2Tokenizer" if config.get("model_type") == "gpt2" else None
    about.one_of("tokenizer_class", ("GPT2Tokenizer", "GPT2TokenizerFast"), default)
    about.one_of("add_prefix_space", (False,), False)
    path = folder / "vocab.json"
    found, added = Config(path), dict[str, int]()
    ids = _vocabulary(found, None, found.values)
    extra = Config(folder / "added_tokens.json", _optional(folder / "added_tokens.json"))
    more = _vocabulary(extra, None, extra.values)
    for token in sorted(more, key=more.__getitem__):
        if more[token] != ids.get(token, len(ids)):  # transformers 5 would number it differently
            raise extra.error(token, f"found id {more[token]}, expected {ids.get(token, len(ids))}, the next one")
        _add(extra, token, ids, added, {"content": token}, more[token])
    for i, entry in _decoder(about):
        _add(about, "added_tokens_decoder", ids, added, entry, i)
    late = {entry["content"] for _, entry in _decoder(about) if entry.get("normalized")}
    lines = read_text(folder / "merges.txt").split("\n")
    lines = lines[1:] if lines[0].startswith("#version") else lines
    merges = _merges(folder / "merges.txt", [line for line in lines if line.strip()], ids)
    return _Parts(path, ids, merges, added, late, "gpt-2")


# ---- what they share -------------------------------------------------------------------------------------------------


def _vocabulary(found: Config, key: str | None, values: Any) -> dict[str, int]:
    if not isinstance(values, dict) or not all(type(i) is int and i >= 0 for i in values.values()):
        raise found.error(key or "", "this is no object of tokens and their numbers")
    return dict(values)


def _entries(found: Config, key: str) -> list[dict[str, Any]]:
    entries = found.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise found.error(key, "this is no list of tokens")
    return entries


def _add(found: Config, key: str, ids: dict[str, int], added: dict[str, int], entry: Mapping[str, Any], i: Any) -> None:
    """Take in an added token: one that is found in a text before the text is cut into words."""
    token = entry.get("content")
    if not isinstance(token, str) or not token or type(i) is not int or i < 0 or ids.get(token, i) != i:
        raise found.error(
            key, f"found the token {token!r:.40} with id {i!r:.40}, and id {ids.get(str(token), 'none')} before"
        )
    for flag in ("lstrip", "rstrip", "single_word"):
        if entry.get(flag):
            raise found.error(key, f"{token!r:.40} has {flag}; llama.cpp leaves the spaces around a token alone")
    ids[token] = i
    added[token] = CONTROL if entry.get("special") else USER_DEFINED


def _decoder(about: Config) -> list[tuple[int, dict[str, Any]]]:
    """``added_tokens_decoder`` of tokenizer_config.json: ids as text, and the token of each."""
    found = about.get("added_tokens_decoder", {})
    if not isinstance(found, dict) or not all(i.isdecimal() and isinstance(t, dict) for i, t in found.items()):
        raise about.error("added_tokens_decoder", "this is no object of ids and tokens")
    return [(int(i), token) for i, token in found.items()]


def _check_decoder(about: Config, parts: _Parts) -> None:
    for i, entry in _decoder(about):
        token = entry.get("content")
        if not isinstance(token, str) or parts.ids.get(token) != i:
            raise about.error("added_tokens_decoder", f"{token!r:.40} is {i}, which {parts.path.name} does not say")


def _merges(path: Path, merges: Any, ids: Mapping[str, int]) -> list[str]:
    """Each merge as two tokens with a space between."""
    if not isinstance(merges, list):
        raise FormatError("this is no list of merges", path=path, field="merges")
    out: dict[str, None] = {}
    for number, merge in enumerate(merges):
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise FormatError(f"merge {number} is {merge!r:.60}, expected two tokens", path=path, field="merges")
        if any(part not in ids for part in (*pair, "".join(pair))):
            raise FormatError(f"merge {number}, {merge!r:.60}: no token of that name", path=path, field="merges")
        if " ".join(pair) in out:  # llama.cpp takes the first one, tokenizers the last
            raise FormatError(f"merge {number}, {merge!r:.60}, is there twice", path=path, field="merges")
        out[" ".join(pair)] = None
    return list(out)


def _special_ids(
    folder: Path, about: Config, config: Config, parts: _Parts, vocabulary: int
) -> tuple[dict[str, int], set[str]]:
    """The ids of the tokens with a role, by role, and those tokens that the tokenizer itself names so.

    The tokenizer's files have the first word, then config.json. A text must have an end; where it has no beginning of
    its own, the end stands for it, since llama.cpp would take token 11.
    """
    older = Config(folder / "special_tokens_map.json", _optional(folder / "special_tokens_map.json"))
    special, named = {}, set()
    for role in _ROLES:
        token = about.get(f"{role}_token", older.get(f"{role}_token"))
        token = token.get("content") if isinstance(token, dict) else token
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


def _tokens(parts: _Parts, named: set[str], vocabulary: int) -> tuple[list[str], list[int]]:
    """The name and the type of every token, by id."""
    missing = [byte for byte, symbol in enumerate(byte_symbols()) if symbol not in parts.ids]
    if missing:
        raise FormatError(
            f"the vocabulary has no token for the byte {missing[0]:#04x}; this is no byte-level BPE", path=parts.path
        )
    tokens, kinds = [f"[PAD{i}]" for i in range(vocabulary)], [UNUSED] * vocabulary
    for token, i in parts.ids.items():
        if "\0" in token:
            raise FormatError(f"{token!r:.40} has a zero character, where llama.cpp's texts end", path=parts.path)
        if i >= vocabulary:
            raise FormatError(f"{token!r:.40} has id {i}, and the model has {vocabulary} tokens", path=parts.path)
        if kinds[i] != UNUSED:
            raise FormatError(f"id {i} is {tokens[i]!r:.40} and {token!r:.40}", path=parts.path)
        tokens[i], kinds[i] = token, CONTROL if token in named else parts.added.get(token, NORMAL)
    if len(set(tokens)) < vocabulary:
        raise FormatError("a token has the name [PADn], which a row without a token needs", path=parts.path)
    return tokens, kinds


def _check_overlaps(parts: _Parts, named: set[str]) -> None:
    """Added tokens that may overlap in a text must be found in the same order by both programs.

    llama.cpp looks for the longest one first (in bytes), wherever it stands. The tokenizers library goes from left to
    right, and takes the longest where several begin; it does so twice, with the "normalized" ones the second time.
    Raises ``FormatError`` for two tokens between which that makes a difference.
    """
    found = {token: token.encode("utf-8", "surrogatepass") for token in sorted(parts.added.keys() | named)}
    early = [data for token, data in found.items() if token not in parts.late or token in named]
    late = [data for token, data in found.items() if token in parts.late and token not in named]
    if max(map(len, early + late), default=0) > MAX_ADDED:
        raise FormatError(f"an added token has more than {MAX_ADDED} bytes", path=parts.path, field="added_tokens")
    pairs = [*_overlaps(early, early), *_overlaps(late, late)]
    pairs += [*_overlaps(early, late), *_overlaps(late, early, shorter=True)]
    pairs += [(two, one) for two in late for one in early if one in two]
    for one, two in pairs:
        names = f"{str(one, 'utf-8', 'replace')!r:.40} and {str(two, 'utf-8', 'replace')!r:.40}"
        raise FormatError(
            f"{names} overlap in a text, and llama.cpp would take the other one first",
            path=parts.path,
            field="added_tokens",
        )


def _overlaps(first: list[bytes], second: list[bytes], shorter: bool = False) -> Iterator[tuple[bytes, bytes]]:
    """Pairs (a, b) where the end of ``a`` is the beginning of ``b``, and ``b`` not shorter, or with ``shorter``, not
    longer: the longest (or shortest) such ``b`` for each such end."""
    best: dict[bytes, list[bytes]] = {}  # beginning -> two of the longest, so that one of them is not ``a`` itself
    for b in sorted(second, key=len, reverse=not shorter):
        for k in range(1, len(b)):
            kept = best.setdefault(b[:k], [])
            if len(kept) < 2:
                kept.append(b)
    for a in first:
        for k in range(1, len(a)):
            for b in best.get(a[-k:], ()):
                if b != a and (len(b) <= len(a) if shorter else len(b) >= len(a)):
                    yield a, b


def _ends(about: Config, parts: _Parts, special: Mapping[str, int]) -> tuple[bool, bool]:
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


def byte_symbols() -> list[str]:
    """The character that a byte-level BPE writes for each byte: itself where it can be printed, else one from 256 on.

    >>> byte_symbols()[ord("A")], byte_symbols()[ord(" ")]
    ('A', 'Ġ')
    """
    printed = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printed else next(others)) for byte in range(256)]


def _optional(path: Path) -> dict[str, Any]:
    return read_object(path) if path.exists() else {}
