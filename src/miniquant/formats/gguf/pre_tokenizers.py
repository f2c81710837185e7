"""How byte-level BPE tokenizers cut a text into words: llama.cpp's names of the rules, and the rules.

The rule is a regular expression in ``tokenizer.json``. llama.cpp has it compiled in, and a GGUF file names it
(``tokenizer.ggml.pre``).

Source: ``llama-vocab.cpp`` for names and rules; ``tokenizer.json`` as the ``tokenizers`` library writes it.
"""

from __future__ import annotations

from typing import Any


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
