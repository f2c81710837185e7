"""Byte-level BPE tokenizers, as Llama 3, Qwen2 and GPT-2 have them, in llama.cpp's terms.

A byte-level BPE is a vocabulary, a list of merges, and a rule that cuts a text into words first. That rule is a regular
expression in ``tokenizer.json``; llama.cpp has it compiled in, and a GGUF file names it (``tokenizer.ggml.pre``). So a
rule that is not in ``formats.gguf.pre_tokenizers`` has no name, and its tokenizer is refused.

Source: ``llama-vocab.cpp`` for names and rules; ``tokenizer.json`` as the ``tokenizers`` library writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.errors import FormatError
from ...formats.gguf.metadata import Typed, ValueType
from ...formats.gguf.pre_tokenizers import PRE_TOKENIZERS
from ...formats.safetensors.read import read_text
from .added import Parts, read_listed, read_vocabulary
from .config import Config

NFC = (
    "transformers puts a text into the form NFC first, and llama.cpp does not; so a text in another form gets other "
    'tokens: pass it through unicodedata.normalize("NFC", text)'
)


def from_byte_level(found: Config, model: Mapping[str, Any], parts: Parts, merges: list[tuple[str, str]]) -> Parts:
    """Fill in what a byte-level BPE has; ``parts`` holds what every ``tokenizer.json`` has."""
    notes: tuple[str, ...] = ()
    if found.get("normalizer") == {"type": "NFC"}:
        notes = (NFC,)
    elif found.get("normalizer") not in (None, {"type": "Sequence", "normalizers": []}):
        kind = found.get("normalizer")
        kind = kind.get("type") if isinstance(kind, dict) else kind
        raise found.error(
            "normalizer",
            f"found {kind!r:.40}; llama.cpp changes no text before it cuts it into tokens. Where your texts come in "
            "that form already, take it out of the file",
        )
    if isinstance(decoder := found.get("decoder"), dict) and decoder.get("type") != "ByteLevel":
        raise found.error("decoder", f"found {decoder.get('type')!r:.40}, expected ByteLevel")
    return parts._replace(keys=_keys(_pre(found, bool(model.get("ignore_merges"))), merges), notes=notes)


def _keys(pre: str, merges: list[tuple[str, str]]) -> dict[str, Any]:
    joined = [" ".join(pair) for pair in merges]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.merges": Typed(joined, ValueType.ARRAY, ValueType.STRING),
    }


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


def from_lists(folder: Path, about: Config, config: Config) -> Parts:
    """GPT-2's own two files, which leave the rule to the class of the tokenizer."""
    default = "GPT2Tokenizer" if config.get("model_type") == "gpt2" else None
    about.one_of("tokenizer_class", ("GPT2Tokenizer", "GPT2TokenizerFast"), default)
    about.one_of("add_prefix_space", (False,), False)
    path = folder / "vocab.json"
    found = Config(path)
    parts = Parts(path, read_vocabulary(found, None, found.values), {}, {}, byte_symbols(), set())
    read_listed(folder, about, parts)
    lines = read_text(folder / "merges.txt").split("\n")
    lines = lines[1:] if lines[0].startswith("#version") else lines
    merges = read_merges(folder / "merges.txt", [line for line in lines if line.strip()], parts.ids)
    return parts._replace(keys=_keys("gpt-2", merges))


def read_merges(path: Path, merges: Any, ids: Mapping[str, int]) -> list[tuple[str, str]]:
    """Each merge as the two tokens that it joins."""
    if not isinstance(merges, list):
        raise FormatError("this is no list of merges", path=path, field="merges")
    out: dict[str, tuple[str, str]] = {}
    for number, merge in enumerate(merges):
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise FormatError(f"merge {number} is {merge!r:.60}, expected two tokens", path=path, field="merges")
        if any(part not in ids for part in (*pair, "".join(pair))):
            raise FormatError(f"merge {number}, {merge!r:.60}: no token of that name", path=path, field="merges")
        if " ".join(pair) in out:  # llama.cpp takes the first one, tokenizers the last
            raise FormatError(f"merge {number}, {merge!r:.60}, is there twice", path=path, field="merges")
        out[" ".join(pair)] = (pair[0], pair[1])
    return list(out.values())


def byte_symbols() -> list[str]:
    """The character that a byte-level BPE writes for each byte: itself where it can be printed, else one from 256 on.

    >>> byte_symbols()[ord("A")], byte_symbols()[ord(" ")]
    ('A', 'Ġ')
    """
    printed = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printed else next(others)) for byte in range(256)]
