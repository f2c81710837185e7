"""The language in which the library speaks to a student: English, or the one that ``MINIQUANT_LANG`` names (``es``).

The sources are written in English. ``translated`` looks a sentence up in the catalogues of a language, which are files
of GNU gettext in ``miniquant/locale/<language>``. An f-string is in the catalogue with its fields numbered, as in
``{0} of {1} results``. What a field holds is translated in the same way. What no catalogue has stays English.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "locale"
VARIABLE = "MINIQUANT_LANG"
_FIELD = re.compile(r"\{(\w*)\}")
_SENTENCES, _COMMAS = re.compile(r"(?<=[.;:?])(\s+)"), re.compile(r"(?<=,)(\s+)")
_STOP = re.compile(r"[.;:] ")
SHORT = 12  # letters: a template with fewer of its own holds no second sentence in a field
DEEPEST = 6  # so many templates lie in one another
_EDGES = " ;,\n"
_VERBATIM = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\([^()]*\)|\[[^\]]*\]")
_NAME = re.compile(
    r"\b(an? )?\w*(Error|Exception)\b|\b(True|False|None|NaN|inf|Python|numpy|torch|PyTorch|float|int|bytes)\b"
)
_SAID = (*("`", "`: ", "Error: ", "("), *("outside the range: ", "does not fit: ", "it was given: ", "left of `=`: "))
# words that are of a sentence, and never the name of a field
_ENGLISH = re.compile(
    r"(?i)the|an?|is|are|that|which|what|of|on|in|where|with|only|every|each|some|others?|right|wrong"
)
_WORD = re.compile(r"\b[A-Za-zÀ-ÿ]{2,}\b")
_chosen: ContextVar[str] = ContextVar("language", default="")


def language() -> str:
    """``"en"``, or the language that is chosen and has catalogues.

    >>> with speaking("es"):
    ...     language()
    'es'
    """
    name = _chosen.get() or os.environ.get(VARIABLE, "")[:2].lower()
    return name if name.isalpha() and (FOLDER / name).is_dir() else "en"


@contextmanager
def speaking(name: str) -> Iterator[None]:
    """Speak this language inside a ``with``, whatever the environment says."""
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


def translated(text: str) -> str:
    """The text in the chosen language; what no catalogue has stays as it is."""
    name = language()
    return text if name == "en" or not text else catalogue(name).look_up(text)[0]


def residue(text: str, name: str) -> int:
    """How many words of the text no catalogue of this language has."""
    return catalogue(name).look_up(text)[1]


@cache
def catalogue(name: str) -> Catalogue:
    """All catalogues of one language together."""
    messages: dict[str, str] = {}
    for path in sorted((FOLDER / name).rglob("*.po")):
        messages |= read_po(path)
    return Catalogue(messages)


def read_po(path: Path) -> dict[str, str]:
    """The messages of a catalogue and their translations; without those that are not translated or marked as fuzzy."""
    messages: dict[str, str] = {}
    for entry in path.read_text("utf-8").split("\n\n"):
        if "\n#, fuzzy" in f"\n{entry}" or "\nmsgid " not in f"\n{entry}":
            continue
        parts = re.split(r"^(?:msgid|msgstr) ", entry, flags=re.M)
        message, translation = ("".join(map(json.loads, part.split("\n"))) for part in map(str.strip, parts[1:3]))
        if message and translation:
            messages[message] = translation
    return messages


@dataclass(frozen=True)
class _Template:
    patterns: tuple[re.Pattern[str], ...]
    words: tuple[str, ...]  # of the translation, before, between and after its fields
    order: tuple[int, ...]  # which field of the message stands in each place of the translation
    pieces: tuple[str, ...]  # the words between the fields of the message, longest first
    own: int  # how many letters they have

    def fits(self, text: str) -> Iterator[re.Match[str]]:
        """The ways in which the text may be cut into fields: short ones first, and long ones first."""
        if not all(piece in text for piece in self.pieces):
            return
        for pattern in self.patterns:
            match = pattern.fullmatch(text)
            if match and not (self.own < SHORT and any(_STOP.search(field) for field in match.groups())):
                yield match

    def filled(self, fields: list[str]) -> str:
        return self.words[0] + "".join(fields[at] + word for at, word in zip(self.order, self.words[1:]))


class Catalogue:
    """Messages of one language, and the templates among them."""

    def __init__(self, messages: dict[str, str]) -> None:
        self.plain: dict[str, str] = {}
        self.templates: list[_Template] = []
        for message, translation in messages.items():
            key, value = message.strip(_EDGES), translation.strip(_EDGES)
            self.plain.setdefault(key, value)
            if _FIELD.search(message):
                self.templates.append(_template(key, value))
        self.templates.sort(key=lambda template: -template.own)
        self.depth = 0
        self.look_up = lru_cache(8192)(self._look_up)

    def _look_up(self, text: str) -> tuple[str, int]:
        """The translation, and how many words of it are not translated."""
        whole = self._whole(text)
        return (whole, 0) if whole is not None else self._joined(text, _SENTENCES, self._by_commas)

    def _whole(self, text: str) -> str | None:
        """The translation of a text that one message, or one template, covers; ``None`` where there is none."""
        if text in self.plain:
            return self.plain[text]
        core = text.strip(_EDGES)
        at = text.find(core)
        before, after = text[:at], text[at + len(core) :]
        if not _words(core):
            return text
        found = self.plain.get(core)
        if found is None and core[-1] in ".:" and (found := self._one(core[:-1])) is not None:
            found += core[-1]
        found = self._one(core) if found is None else found
        return None if found is None else before + found + after

    def _one(self, core: str) -> str | None:
        if core in self.plain:
            return self.plain[core]
        small = self.plain.get(core[:1].lower() + core[1:])
        return small[:1].upper() + small[1:] if small is not None else self._by_template(core)

    def _by_template(self, text: str) -> str | None:
        """The text by the template with the most words of its own; ``None`` where a word would stay untranslated.

        A sentence is in one language or in the other.
        """
        if self.depth >= DEEPEST:
            return None
        forms = (text, text[0].lower() + text[1:]) if text[0].isupper() else (text,)
        self.depth += 1
        try:
            for template in self.templates:
                for form in forms:
                    for match in template.fits(form):
                        fields = self._fields_of(form, match)
                        if fields is not None:
                            filled = template.filled(fields)
                            return filled if form is text else filled[:1].upper() + filled[1:]
            return None
        finally:
            self.depth -= 1

    def _fields_of(self, text: str, match: re.Match[str]) -> list[str] | None:
        fields = []
        for number, value in enumerate(match.groups(), 1):
            before = text[: match.start(number)]
            said = before.endswith(_SAID)  # code, or the message of an exception
            name = " " not in value and value not in self.plain and not _ENGLISH.fullmatch(value)  # a field, a key
            new, missing = (value, 0) if said or name else self.look_up(value)
            if missing:
                return None
            fields.append(new)
        return fields

    def _by_commas(self, text: str) -> tuple[str, int]:
        """A sentence part by part; one of which the catalogues lack a part stays as it is."""
        new, missing = self._joined(text, _COMMAS, lambda part: (part, _words(part)))
        return (text, _words(text)) if missing else (new, 0)

    def _joined(self, text: str, joint: re.Pattern[str], last: Callable[[str], tuple[str, int]]) -> tuple[str, int]:
        """The longest parts between joints that the catalogues have; ``last`` is for a single one that they lack."""
        pieces = joint.split(text)
        done, missing, at = "", 0, 0
        while at < len(pieces):
            for end in range(len(pieces), at, -2):
                part = "".join(pieces[at:end])
                whole = self._whole(part)
                if whole is not None or end == at + 1:
                    break
            new, count = (whole, 0) if whole is not None else last(part)
            done, missing = done + new + (pieces[end] if end < len(pieces) else ""), missing + count
            at = end + 1
        return done, missing


def _template(message: str, translation: str) -> _Template:
    names = _fields(message)
    order = [names.index(name) for name in _fields(translation)]
    pieces = _FIELD.split(message)[::2]
    kinds = ("(.*?)", "(.*)") if len(pieces) > 2 else ("(.*?)",)
    patterns = tuple(re.compile(kind.join(map(re.escape, pieces)), re.S) for kind in kinds)
    longest = sorted((piece for piece in pieces if piece), key=len, reverse=True)
    return _Template(
        patterns,
        tuple(_FIELD.split(translation)[::2]),
        tuple(order),
        tuple(longest),
        len(re.findall("[A-Za-z]", "".join(pieces))),
    )


def _fields(text: str) -> list[str]:
    """The names of the fields in their order; those without a name are counted."""
    nameless = (f"nameless {number}" for number in range(99))
    return [name or next(nameless) for name in _FIELD.findall(text)]


def _words(text: str) -> int:
    return len(_WORD.findall(_NAME.sub("", _VERBATIM.sub("", text))))
