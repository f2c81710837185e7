"""How long a lab takes: its visible words at reading speed, and the minutes of its exercises.

Visible is what a student sees without opening anything: Markdown outside of folds, and the docstrings of the stubs.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.language import translated

WORDS_A_MINUTE = 180
LIMIT = 60  # minutes that a lab may take
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_FOLD = re.compile(r"<details\b.*?</details>", re.S)
_TIME = "**Time.**"
_PLACE = "words.md#what-a-check-accepts"
RULES = f"A function leaves its arguments as they are; [What a check accepts](../book/{_PLACE}) has all such rules."

Cell = Mapping[str, Any]


@dataclass(frozen=True)
class Time:
    """The time of a lab in minutes. ``total`` is rounded up."""

    words: int
    exercises: int  # how many
    practice: int  # the minutes of the exercises

    @property
    def total(self) -> int:
        """Reading and exercises together."""
        return math.ceil(self.words / WORDS_A_MINUTE) + self.practice

    @property
    def line(self) -> str:
        """The line of the lab's first cell.

        >>> print(Time(words=1600, exercises=6, practice=43).line)
        **Time.** 52 minutes: 9 of reading, 43 for six exercises.
        """
        return (
            f"{_TIME} {self.total} minutes: {self.total - self.practice} of reading, {self.practice} for {self.count}."
        )

    @property
    def count(self) -> str:
        """How many exercises, in words."""
        number = _NUMBERS[self.exercises] if self.exercises < len(_NUMBERS) else str(self.exercises)
        return f"{number} exercise{'' if self.exercises == 1 else 's'}"


def visible(markdown: str) -> str:
    """The Markdown that is seen without opening a fold, without tags, addresses of links and the line of the time.

    >>> visible("Read [this](a/b.md). <details><summary>Hint</summary> hidden </details> **Now.**")
    'Read this.  Now.'
    """
    text = without_time(_FOLD.sub("", markdown))
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<(/?\w[^>]*|!--.*?--)>", "", text, flags=re.S)
    return re.sub(r"[*#|]+", "", text)


def words(cells: Iterable[Cell]) -> int:
    """How many visible words a notebook has."""
    return sum(len(re.findall(r"\w[\w'’.,-]*", text)) for text in texts(cells))


def texts(cells: Iterable[Cell]) -> list[str]:
    """What a student reads of each cell."""
    found = []
    for cell in cells:
        source = "".join(cell["source"])
        part = cell["metadata"].get("miniquant", {}).get("part", "")
        if cell["cell_type"] == "markdown" and part != "help":
            found.append(visible(source))
        elif part == "stub":
            found.append(docstring(source))
    return found


def docstring(source: str) -> str:
    """The docstring of the first function of a cell; empty if there is none."""
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return (ast.get_docstring(functions[0]) or "") if functions else ""


def time_of(cells: Iterable[Cell], minutes: Mapping[str, int]) -> Time:
    """The time of a notebook; ``minutes`` gives those of an exercise by its name."""
    cells = list(cells)
    marks = [cell["metadata"].get("miniquant", {}) for cell in cells]
    names = [mark["exercise"] for mark in marks if mark.get("part") == "stub"]
    return Time(words(cells), len(names), sum(minutes[name] for name in names))


def with_time(source: str, time: Time) -> str:
    """The text of a lab's first cell with the line of the time: in place of the one that is there, or at the end.

    Where a lab has exercises, the rules of all checks follow, unless the cell's own words name them.

    >>> source = "# Lab 06\\n\\n**Time.** an hour\\n\\nRun it all first."
    >>> print(with_time(source, Time(360, 1, 5)))  # doctest: +ELLIPSIS
    # Lab 06
    <BLANKLINE>
    **Time.** 7 minutes: 2 of reading, 5 for one exercise.
    A function leaves its arguments as they are; ...
    <BLANKLINE>
    Run it all first.
    """
    paragraphs = source.split("\n\n")
    places = [at for at, paragraph in enumerate(paragraphs) if paragraph.startswith(_TIME)]
    if not places:
        places = [len(paragraphs)]
        paragraphs.append("")
    line, rules = translated(time.line), translated(RULES)
    told = any(_PLACE in paragraph for at, paragraph in enumerate(paragraphs) if at != places[0])
    paragraphs[places[0]] = line if told or not time.exercises else f"{line}\n{rules}"
    return "\n\n".join(paragraphs)


def without_time(source: str) -> str:
    """The text of a cell without the paragraph of the time, which is computed."""
    return "\n\n".join(p for p in source.split("\n\n") if not p.startswith(_TIME))
