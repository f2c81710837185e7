"""What every tokenizer has: tokens with their ids, and added tokens, which are found before a text is cut.

llama.cpp and the ``tokenizers`` library look for added tokens in another order; where that could make a difference, the
tokenizer is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import FormatError
from ...formats.safetensors.read import read_object
from .config import Config

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # llama.h, enum llama_token_type
MAX_ADDED = 4096  # bytes of an added token: none has a tenth of it, and looking for overlaps takes its square


class Parts(NamedTuple):
    """What each way of storing a tokenizer holds.

    ``keys`` are those that its kind adds, and ``scores`` those of its tokens, where it has some; ``byte_tokens`` are
    the names of the 256 bytes; ``late`` are added tokens that are looked for after the others; ``ends`` the tokens put
    before and after a text; ``kinds`` the types of tokens that are not normal; ``roles`` the tokens that the vocabulary
    itself gives one; ``notes`` say which texts get other tokens in transformers.
    """

    path: Path
    ids: dict[str, int]  # token -> id, the added tokens too
    keys: dict[str, Any]
    added: dict[str, int]  # token -> type
    byte_tokens: list[str]
    late: set[str]
    scores: Mapping[str, float] | None = None
    ends: tuple[str | None, str | None] = (None, None)
    kinds: Mapping[str, int] = {}
    roles: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()


def read_vocabulary(found: Config, key: str | None, values: Any) -> dict[str, int]:
    """Tokens and their ids: a dict of its own. Raises ``FormatError`` for anything else."""
    if not isinstance(values, dict) or not all(type(i) is int and i >= 0 for i in values.values()):
        raise found.error(key or "", "this is no object of tokens and their numbers")
    return dict(values)


def read_entries(found: Config, key: str) -> list[dict[str, Any]]:
    """A list of added tokens. Raises ``FormatError`` for anything else."""
    entries = found.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise found.error(key, "this is no list of tokens")
    return entries


def add_token(
    found: Config, key: str, ids: dict[str, int], added: dict[str, int], entry: Mapping[str, Any], i: Any
) -> None:
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


def read_decoder(about: Config) -> list[tuple[int, dict[str, Any]]]:
    """``added_tokens_decoder`` of tokenizer_config.json: ids as text, and the token of each."""
    found = about.get("added_tokens_decoder", {})
    if not isinstance(found, dict) or not all(i.isdecimal() and isinstance(t, dict) for i, t in found.items()):
        raise about.error("added_tokens_decoder", "this is no object of ids and tokens")
    return [(int(i), token) for i, token in found.items()]


def read_listed(folder: Path, about: Config, parts: Parts) -> None:
    """Take in the added tokens that stand outside of a vocabulary: in added_tokens.json, in tokenizer_config.json."""
    extra = Config(folder / "added_tokens.json", optional(folder / "added_tokens.json"))
    more = read_vocabulary(extra, None, extra.values)
    for token in sorted(more, key=more.__getitem__):
        if more[token] != parts.ids.get(token, len(parts.ids)):  # transformers 5 would number it differently
            raise extra.error(
                token, f"found id {more[token]}, expected {parts.ids.get(token, len(parts.ids))}, the next one"
            )
        add_token(extra, token, parts.ids, parts.added, {"content": token}, more[token])
    for i, entry in read_decoder(about):
        add_token(about, "added_tokens_decoder", parts.ids, parts.added, entry, i)
    parts.late.update(entry["content"] for _, entry in read_decoder(about) if entry.get("normalized"))


def check_decoder(about: Config, parts: Parts) -> None:
    """Raises ``FormatError`` if ``added_tokens_decoder`` gives a token another id than the vocabulary."""
    for i, entry in read_decoder(about):
        token = entry.get("content")
        if not isinstance(token, str) or parts.ids.get(token) != i:
            raise about.error("added_tokens_decoder", f"{token!r:.40} is {i}, which {parts.path.name} does not say")


def check_overlaps(parts: Parts, named: set[str]) -> None:
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


def optional(path: Path) -> dict[str, Any]:
    """The values of a JSON file, none where there is no file."""
    return read_object(path) if path.exists() else {}
