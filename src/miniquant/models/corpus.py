"""The text that MiniGPT and MiniLlama learn from and are measured on: what Python says about itself.

Two sources, both read from the running interpreter and never copied: ``topics`` (the language reference of
``help('...')``) and ``docstrings`` (of the standard library). A document is held out if the hash of its name says
so, on every machine alike. A split by name alone leaks, because documents quote each other: a paragraph of the
held-out part is dropped from the training part, and a paragraph that the committed model was trained on (another
Python version may have moved it) is dropped from the held-out part.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import os
import re
import sysconfig
from collections import deque
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Literal

import numpy as np
from tokenizers import Tokenizer

Source = Literal["topics", "docstrings"]

END_OF_TEXT = "<|endoftext|>"  # token 0, stands before every document
SENTENCEPIECE_BEGIN, SENTENCEPIECE_END = "<s>", "</s>"  # of MiniLlama
HELD_OUT_PART = 0.13  # of the documents
SHORTEST_DOCSTRING = 80  # characters
SHORTEST_DUPLICATE = 40  # characters; shorter paragraphs ("See also:") may repeat
_NOT_LIBRARY = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "pydoc_data", "__pycache__"}


@functools.cache
def documents(source: Source, held_out: bool | None = None) -> dict[str, str]:
    """The documents of a source by name, in the order of their names: all, or the held-out or the other ones.

    Raises ``ValueError`` for a source other than ``"topics"`` and ``"docstrings"``.
    """
    if source == "topics":
        from pydoc_data.topics import topics

        return {name: topics[name].strip() for name in sorted(topics) if held_out in (None, is_held_out(name))}
    if source == "docstrings":
        return _docstrings(Path(sysconfig.get_path("stdlib")), held_out)
    raise ValueError(f"unknown source {source!r}; there are 'topics' and 'docstrings'")


def _docstrings(folder: Path, held_out: bool | None = None) -> dict[str, str]:
    """One document a module: its docstrings in the order of the source. Parsed, not imported; only what is wanted."""
    found = {}
    for path in sorted(_modules(folder)):
        name = ".".join(path.relative_to(folder).with_suffix("").parts)
        if held_out in (None, is_held_out(name)) and (text := _docstrings_of(path)):
            found[name] = text
    return found


def _modules(folder: Path) -> Iterator[Path]:
    """The modules of the library; a folder of other packages, which may be very large, is not entered."""
    for place, folders, files in os.walk(folder):
        folders[:] = set(folders) - _NOT_LIBRARY
        names = [Path(place, name) for name in files if name.endswith(".py")]
        yield from (path for path in names if path.stem not in _NOT_LIBRARY)


@functools.cache
def _docstrings_of(path: Path) -> str:
    """The long docstrings of one module; an empty text for a file that is no Python, as a few templates are."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return ""
    nodes = [n for n in _statements(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
    texts = [inspect.cleandoc(ast.get_docstring(node) or "") for node in nodes]
    return "\n\n".join(text for text in texts if len(text) >= SHORTEST_DOCSTRING)


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements of a module in the order of ``ast.walk``, which would look at every expression, too."""
    waiting: deque[ast.AST] = deque([tree])
    while waiting:
        node = waiting.popleft()
        yield node
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):  # as they follow each other in ``_fields``
            inside = getattr(node, part, ())
            waiting.extend(inside if isinstance(inside, list) else ())  # the body of a lambda is no list


def is_held_out(name: str) -> bool:
    """Whether the document of this name is held out; depends on the name alone.

    >>> is_held_out("assert"), is_held_out("while")
    (False, True)
    """
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32 < HELD_OUT_PART


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, in order: what stands between blank lines."""
    return [p.strip("\n") for p in re.split(r"\n[ \t]*\n", text) if p.strip()]


def paragraph_hash(paragraph: str) -> int:
    """64 bits that name a paragraph, whatever its white space: paragraphs that read the same get the same number."""
    normal = " ".join(paragraph.split())
    return int.from_bytes(hashlib.blake2b(normal.encode(), digest_size=8).digest(), "little")


def _without_repeats(text: str, seen: set[int]) -> str:
    """``text`` less the long paragraphs in ``seen``; what it keeps is added to ``seen``."""
    kept = []
    for paragraph in paragraphs(text):
        if len(paragraph) >= SHORTEST_DUPLICATE:
            number = paragraph_hash(paragraph)
            if number in seen:
                continue
            seen.add(number)
        kept.append(paragraph)
    return "\n\n".join(kept)


def _collect(source: Source, held_out: bool, seen: set[int]) -> list[str]:
    texts = documents(source, held_out).values()
    return [text for text in (_without_repeats(text, seen) for text in texts) if text]


def _trained_on() -> set[int]:
    """The paragraphs of the committed model's training text (``assets/trained_on.bin``: 64-bit hashes)."""
    data = resources.files("miniquant").joinpath("assets/trained_on.bin").read_bytes()
    return set(np.frombuffer(data, "<u8").tolist())


@functools.cache
def held_out_documents(source: Source, *, fresh: bool = False) -> list[str]:
    """The held-out documents of a source, without repeated paragraphs.

    ``fresh`` leaves out the comparison with the committed model's training text: for training a new one.
    """
    seen = set() if fresh else _trained_on()
    return _collect(source, True, seen)


@functools.cache
def training_documents(only: Source | None = None) -> list[str]:
    """The training documents of both sources, or of one, without any paragraph that is held out on this interpreter."""
    seen: set[int] = set()
    for source in ("topics", "docstrings"):
        _collect(source, True, seen)
    found = {source: _collect(source, False, seen) for source in ("topics", "docstrings") if only in (None, source)}
    return [text for texts in found.values() for text in texts]


def text_hash(documents: list[str]) -> str:
    """The first 12 hexadecimal digits of the documents' SHA-256: which text a figure was measured on."""
    return hashlib.sha256("\0".join(documents).encode()).hexdigest()[:12]


@functools.cache
def load_tokenizer() -> Tokenizer:
    """The committed byte-level BPE tokenizer, 1024 tokens; token 0 is the end of a text.

    >>> load_tokenizer().encode("import the module").tokens
    ['i', 'mp', 'ort', 'Ġthe', 'Ġmodule']
    """
    return Tokenizer.from_str(resources.files("miniquant").joinpath("assets/tokenizer.json").read_text("utf-8"))


def encode_documents(tokenizer: Tokenizer, documents: list[str]) -> np.ndarray:
    """All documents as one row of token ids, each after an end-of-text token: (n,) int64.

    A SentencePiece tokenizer puts ``<s>`` before a text by itself, and each text ends with ``</s>``.
    """
    end = tokenizer.token_to_id(SENTENCEPIECE_END)
    before, after = ([0], []) if end is None else ([], [end])
    ids = [i for encoding in tokenizer.encode_batch(documents) for i in (*before, *encoding.ids, *after)]
    return np.array(ids, dtype=np.int64)


@functools.cache
def _held_out_ids(source: Source) -> np.ndarray:
    """The held-out text in MiniGPT's tokens, which are always the same ones."""
    return encode_documents(load_tokenizer(), held_out_documents(source))


def held_out_windows(
    source: Source = "topics", length: int = 256, limit: int | None = None, tokenizer: Tokenizer | None = None
) -> np.ndarray:
    """Held-out text cut into windows that do not overlap: (n, length + 1) int64; the last column is predicted only.

    The tokens are MiniGPT's, or another tokenizer's.
    """
    ids = _held_out_ids(source) if tokenizer is None else encode_documents(tokenizer, held_out_documents(source))
    starts = range(0, len(ids) - length, length)
    return np.stack([ids[start : start + length + 1] for start in starts][:limit])


def token_bytes(tokenizer: Tokenizer) -> np.ndarray:
    """How many bytes of text each token stands for: (vocab_size,) int64; 0 for the beginning and the end of a text.

    The byte-level alphabet writes every byte as one character, so a token's length is its number of bytes. A
    SentencePiece token is text with ▁ for a space, or one byte, written as ``<0x0A>``.
    """
    tokens = [tokenizer.id_to_token(i) or "" for i in range(tokenizer.get_vocab_size())]
    if tokenizer.token_to_id(SENTENCEPIECE_END) is None:
        sizes = [0 if token == END_OF_TEXT else len(token) for token in tokens]
    else:
        special = {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
        one = re.compile("<0x[0-9A-F]{2}>")
        texts = ["." if one.fullmatch(token) else token.replace("▁", " ") for token in tokens]
        sizes = [0 if i in special else len(text.encode()) for i, text in enumerate(texts)]
    return np.array(sizes, dtype=np.int64)


def window_bytes(windows: np.ndarray, tokenizer: Tokenizer | None = None) -> np.ndarray:
    """How many bytes of text each predicted token stands for: (n, length + 1) int64   ->   (n, length) int64.

    The space that SentencePiece puts before a text is not in the text, and counts nothing.
    """
    tokenizer = tokenizer or load_tokenizer()
    begin = tokenizer.token_to_id(SENTENCEPIECE_BEGIN)
    sizes: np.ndarray = token_bytes(tokenizer)[windows[:, 1:]]
    return sizes if begin is None else sizes - ((windows[:, :-1] == begin) & (sizes > 0))
