"""The words of the course: which word is used for what, and which words it replaces.

``book/words.md`` explains the list to people; the tests look for the replaced words in everything that a student reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

QUANTIZATION = ("int8", "int4", "verify", "q4_1_bridge", "awq", "gptq", "smoothquant", "k_quants")


@dataclass(frozen=True)
class Word:
    """A word of the course and the pattern of what it replaces; ``allowed`` matches what stays.

    ``subjects`` are the labs in which the pattern means this; empty for everywhere.
    """

    plain: str
    replaced: str
    allowed: str = ""
    subjects: tuple[str, ...] = ()


WORDS = (
    Word("is a duplicate, is there twice", r"\bstands? twice\b"),
    Word("bit for bit", r"\bto the bit\b"),
    Word("fix", r"\bmend(s|ed|ing)?\b"),
    Word("check against", r"\b(hold|holds|held|holding) (\S+ ){1,9}?against\b"),
    Word("after", r"\bbehind\b", r"\b(leav|left|fall|fell|stay)\w*( \S+){0,7} behind\b"),
    Word("before, at the start of", r"\bin front of\b", r"\bin front of you\b"),
    Word("becomes", r"\bcomes? of it\b"),
    Word("must", r"\b(has|have) to be (one|ones) that\b"),
    Word("thinks, assumes", r"\bbelieves? to\b"),
    Word("grid", r"\brulers?\b"),
    Word("level", r"\bmarks?\b", r"question marks?", QUANTIZATION),
    Word(
        "large, largest, wide",
        r"\blong(er|est)? (weight|row|column|channel|group|matri|value|number)",
        "",
        QUANTIZATION,
    ),
    Word("large", r"\bis (too )?long(er)?\b", "", ("int8", "int4")),
    Word("noise", r"\bluck in\b"),
    Word("mins", r"\bminimums\b|\bminima\b"),
    Word("how well it still predicts", r"\bwords that the model has left\b"),
    Word("yes", r"\bnot nearly:"),
    Word("here", r"\bat hand\b"),
    Word("one extra", r"\bone duty more\b"),
    Word("another, a different", r"\bis another one\b"),
    Word("continues, resumes", r"\bgoes? on (from|with)\b"),
    Word("is wrong", r"\bit slips\b"),
    Word("not 8 times smaller", r"\ban eighth of thirty-two\b"),
    Word("real, worth knowing", r"\b(is|are) a find\b"),
    Word("is in, is", r"\bstands? in (no|the|its|their|a|an|every|solutions|which)\b"),
    Word("how X changes", r"\bmakes? of it\b"),
    Word("what happens to", r"\bbecomes of\b"),
    Word("silently", r"\bwithout a word\b"),
    Word("on average", r"\bon the average\b"),
    Word("relative", r"\bby (up to )?a part of\b"),
    Word("reversed", r"\bturned round\b"),
    Word("asymmetric", r"\blopsided\b"),
)

_ANY = re.compile("|".join(word.replaced for word in WORDS), re.I)


def replaced(text: str, subject: str = "") -> Iterator[tuple[str, str]]:
    """The words of a text that the course replaces: (what stands there with its neighbours, the plain word).

    >>> list(replaced("The scale lies behind the values."))
    [('The scale lies behind the values.', 'after')]
    """
    flat = " ".join(text.split())
    if not _ANY.search(flat):
        return
    for word in WORDS:
        if word.subjects and subject not in word.subjects:
            continue
        for match in re.finditer(word.replaced, flat, re.I):
            start, end = max(0, match.start() - 40), match.end() + 40
            if word.allowed and any(
                m.start() <= match.start() < m.end() for m in re.finditer(word.allowed, flat, re.I)
            ):
                continue
            yield flat[start:end].strip(), word.plain
