"""Everything that a student reads, piece by piece: cells, the texts of lessons, pages, messages, docstrings."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from places import ROOT

from miniquant.lab import exercises
from miniquant.lab.catalogue import course
from miniquant.lab.spec import text_of
from miniquant.lessons import COURSE
from miniquant.models.corpus import _statements as statements

SOURCE = ROOT / "src" / "miniquant"
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "solutions/03-gguf-export-ref.md",
    "solutions/PHASE_26_REPORT.md",
]
ABOUT_QUANTIZATION = [
    *("book/part-2-quantization.md", "book/part-5-better-four-bits.md", "book/quantization.md"),
    *("book/quark-bridge.md", "book/k-quants.md", "book/exact.md"),
]
# rooms whose constants are measured: a changed message would make their stored results stale
MEASURED = ("core", "quantization", "formats", "calibrate", "runtime")


@dataclass(frozen=True)
class Text:
    """A piece of text, where it is, and the number and the subject of its lab ("" elsewhere)."""

    place: str
    text: str
    lab: str = ""

    @property
    def subject(self) -> str:
        if self.lab:
            return COURSE[int(self.lab)]
        return "int4" if self.place.split(" ")[0] in ABOUT_QUANTIZATION else ""


def of_notebooks() -> Iterator[Text]:
    """Every cell of the solved labs but those that are made from lessons."""
    for path in sorted((ROOT / "solutions").glob("[0-9][0-9]-*.ipynb")):
        for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
            if cell["metadata"].get("miniquant", {}).get("part") not in ("goal", "stub", "help"):
                yield Text(f"{path.name}[{number}]", "".join(cell["source"]), path.name[:2])
                alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
                yield Text(f"{path.name}[{number}] alt", alt, path.name[:2])


def of_lessons() -> Iterator[Text]:
    """Goal, hints, why, docstring, and each mistake's texts."""
    for name in exercises():
        spec = exercises()[name]
        text = text_of(spec.reference)
        parts = [("goal", spec.goal), ("why", spec.why), ("docstring", text.head), ("solution", text.body)]
        parts += [(f"hint {number}", hint) for number, hint in enumerate(spec.hints, 1)]
        for m in spec.mistakes:
            parts += [(f"{m.name!r}", " · ".join((m.name, m.cause, m.cure, f"I see {m.see}")))]
        for part, said in parts:
            yield Text(f"lessons/{spec.subject}/{name}.py: {part}", said, spec.lab)


def of_pages() -> Iterator[Text]:
    """Paragraphs of the book and of the pages at the root."""
    for path in [*sorted((ROOT / "book").glob("*.md")), *(ROOT / name for name in PAGES)]:
        if path.name != "words.md":
            for number, paragraph in enumerate(path.read_text("utf-8").split("\n\n")):
                yield Text(f"{path.relative_to(ROOT)} ¶{number}", paragraph)
    yield Text("book/course.toml", (ROOT / "book/course.toml").read_text("utf-8"))


def of_sources() -> Iterator[Text]:
    """Comments and texts of the library; of the measured rooms comments and docstrings alone."""
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE)
        if place.parts[0] == "lessons" or place.name == "words.py":
            continue
        source = path.read_text("utf-8")
        for number, line in enumerate(source.splitlines(), 1):
            if "#" in line:  # a comment; or the end of a text, which is one of the texts as well
                yield Text(f"{place}:{number}", line[line.index("#") :])
        for line, text in _strings(ast.parse(source), only_docstrings=place.parts[0] in MEASURED):
            yield Text(f"{place}:{line}", text)


def _strings(tree: ast.Module, only_docstrings: bool) -> Iterator[tuple[int, str]]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in statements(tree) if only_docstrings else ast.walk(tree):
        if only_docstrings and isinstance(node, documented) and (said := ast.get_docstring(node, clean=False)):
            yield node.body[0].lineno, said
        elif not only_docstrings and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def everything() -> list[Text]:
    """All of it."""
    assert course() == COURSE
    return [*of_notebooks(), *of_lessons(), *of_pages(), *of_sources()]


def lab_number(text: Text) -> int:
    """The number of the lab, -1 outside of labs."""
    return int(text.lab) if text.lab else -1


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
