"""The course as a table: for each lab its part, number, title, time, what a student builds and leaves with.

``book/course.toml`` holds what people write; the number comes from ``COURSE``, the title from the lab's notebook, the
time from its words and exercises. The site, the README and the tests read this one table.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import MiniquantError
from ...core.language import translated
from ..catalogue import course, exercises
from .reading import Time, time_of

SOURCE = "book/course.toml"
_TORCH = re.compile(r"^\s*(import|from) (torch|miniquant\.(models|evaluate|calibrate|quark))\b", re.M)
BEGIN, END = "<!-- the labs: written by tools/course.py -->", "<!-- end of the labs -->"


@dataclass(frozen=True)
class Lab:
    """One line of the table. ``file`` is the name of its notebook, without the folder; ``after`` are the numbers of the
    labs that it builds on; ``torch`` says whether it needs PyTorch.
    """

    number: str
    subject: str
    title: str
    file: str
    build: str
    leave: str
    time: Time
    after: tuple[str, ...]
    torch: bool

    @property
    def needs(self) -> str:
        """What a student needs, in words: ``labs 07 and 15, PyTorch``."""
        return _needs(self.after, self.torch)


@dataclass(frozen=True)
class Part:
    """A part of the course: its name (``III``), its title, its page (empty if it has none), what a student leaves it
    with, and its labs.
    """

    name: str
    title: str
    page: str
    leave: str
    labs: tuple[Lab, ...]

    @property
    def minutes(self) -> int:
        """The time of all its labs."""
        return sum(lab.time.total for lab in self.labs)

    @property
    def needs(self) -> str:
        """The labs of other parts that its labs build on, and PyTorch if one of them needs it."""
        own = {lab.number for lab in self.labs}
        before = sorted({number for lab in self.labs for number in lab.after} - own)
        return _needs(before, any(lab.torch for lab in self.labs))


def _needs(labs: Sequence[str], torch: bool) -> str:
    library = translated("PyTorch" if torch else "numpy alone")
    if not labs:
        return library
    *most, last = labs
    before = f"labs {', '.join(most)} and {last}" if most else f"lab {last}"
    return f"{translated(before)}, {library}"


def read_course(root: Path) -> list[Part]:
    """The parts of the course of a checkout; a lab that has no notebook yet is left out.

    Raises ``MiniquantError`` if the table and the course do not have the same labs in the same order.
    """
    table = tomllib.loads((root / SOURCE).read_text("utf-8"))
    listed = tuple(subject for part in table["part"] for subject in part["labs"])
    if listed != course():
        odd = next((a or b for a, b in _pairs(listed, course()) if a != b), "")
        raise MiniquantError(f"{SOURCE} and COURSE differ at {odd!r}; both must list the same labs in the same order")
    if missing := [subject for subject in listed if subject not in table["lab"]]:
        raise MiniquantError(f"{SOURCE} has no [lab.{missing[0]}]; add it with build and leave")
    parts = []
    for part in table["part"]:
        labs = [lab for subject in part["labs"] if (lab := _lab(subject, table["lab"][subject], root))]
        title, leave = translated(part["title"]), translated(part.get("leave", ""))
        parts.append(Part(part["name"], title, part.get("page", ""), leave, tuple(labs)))
    return parts


def _pairs(one: tuple[str, ...], other: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    length = max(len(one), len(other))
    yield from zip((*one, *[""] * (length - len(one))), (*other, *[""] * (length - len(other))))


def _lab(subject: str, texts: dict[str, Any], root: Path) -> Lab | None:
    number = f"{course().index(subject):02}"
    paths = list((root / "solutions").glob(f"{number}-*.ipynb"))
    if not paths:
        return None
    cells = json.loads(paths[0].read_text("utf-8"))["cells"]
    title = re.match(r"# (?:Lab )?\d\d\W+(.*)", "".join(cells[0]["source"]))
    if not title:
        raise MiniquantError(f"{paths[0].name} does not begin with its title; expected '# Lab {number}: …'")
    minutes = {spec.name: spec.minutes for spec in exercises().of_lab(subject)}
    time = time_of(cells, minutes)
    torch = any(_TORCH.search("".join(cell["source"])) for cell in cells if cell["cell_type"] == "code")
    after = tuple(_earlier(subject, name) for name in texts.get("after", ()))
    words = [translated(text) for text in (title[1], texts["build"], texts["leave"])]
    return Lab(number, subject, words[0], paths[0].name, words[1], words[2], time, after, torch)


def _earlier(subject: str, name: str) -> str:
    before = course()[: course().index(subject)]
    if name not in before:
        raise MiniquantError(f"{SOURCE}: [lab.{subject}] comes after {name!r}, which is no earlier lab")
    return f"{before.index(name):02}"


def with_new_lab(table: str, subject: str, title: str) -> str:
    """The text of ``course.toml`` with one more lab at the end of the last part; its author writes the two lines."""
    before, labs, after = table.rpartition("\nlabs = [")
    names, bracket, rest = after.partition("]")
    entry = f'\n[lab.{subject}]\nbuild = "{title}"\nleave = "{title}"\n'
    return f'{before}{labs}{names}{", " if names else ""}"{subject}"{bracket}{rest.rstrip()}\n{entry}'


def rows(labs: tuple[Lab, ...], folder: str) -> list[str]:
    """A table in Markdown; ``folder`` leads from the page to the students' notebooks."""
    lines = [translated("| lab | time | you build | you leave with |"), "| --- | --- | --- | --- |"]
    for lab in labs:
        title = lab.title[:1].upper() + lab.title[1:]
        exercises_of = translated(f"{lab.time.exercises} exercise{'' if lab.time.exercises == 1 else 's'}")
        time = f"{lab.time.total} min, {exercises_of}"
        lines.append(f"| [{lab.number} {title}]({folder}/{lab.file}) | {time} | {lab.build} | {lab.leave} |")
    return lines


def all_labs(parts: list[Part]) -> tuple[Lab, ...]:
    """The labs of all parts, in order."""
    return tuple(lab for part in parts for lab in part.labs)


def with_table(readme: str, parts: list[Part]) -> str:
    """The README with the table between its two marks. Raises ``MiniquantError`` if a mark is missing."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise MiniquantError(f"the README lacks {END if begin else BEGIN!r}")
    return "\n".join([before + BEGIN, *rows(all_labs(parts), "notebooks"), END + after])
