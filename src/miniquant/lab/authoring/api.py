"""What was taught where: for each exercise the API that its solution uses, and where the course introduced it.

The API of a solution is read from its syntax tree: the functions, methods and attributes that it names, the keywords of
its calls, operators on bits, the letters of its formats. ``PLAIN`` is left out: what the course presupposes of Python.
Introduced is what a student has seen before the stub: Markdown outside of folds, code, docstrings of stubs, the stub's
own included. Hints, outputs and solutions do not count.
"""

from __future__ import annotations

import ast
import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..catalogue import exercises
from ..spec import Exercise, text_of
from .reading import docstring, visible

# built-in functions and exceptions; methods of text, lists, dicts and sets; keywords
_PLAIN = """
all any bool bytes dict enumerate float int isinstance len list max min open print range repr reversed round set sorted
str sum super tuple type zip Exception IndexError KeyError NotImplementedError TypeError ValueError
add append copy count endswith extend format get index items join keys lower pop remove replace reverse sort split
startswith strip update upper values read write close
key default
"""
PLAIN = frozenset(_PLAIN.split())
_OPERATORS: dict[type[ast.AST], str] = {
    ast.RShift: ">>",
    ast.LShift: "<<",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.Invert: "~",
    ast.MatMult: "@",
}
_SPAN = re.compile(r"```.*?```|`[^`\n]+`", re.S)


@dataclass(frozen=True)
class Use:
    """A piece of API that a solution uses. ``pattern`` finds it in code; ``word``, if there is one, in a docstring."""

    name: str
    pattern: str
    word: str = ""


@dataclass(frozen=True)
class Place:
    """Where a course introduces something: the number of the lab and of the cell, counted from 0."""

    lab: str
    cell: int

    def __str__(self) -> str:
        return f"{self.lab}[{self.cell}]"


@dataclass(frozen=True)
class Taught:
    """A use in an exercise: where it was introduced, or ``None``; and whether a hint names it."""

    exercise: str
    lab: str
    use: str
    place: Place | None
    in_hint: bool

    @property
    def where(self) -> str:
        """The place in words."""
        if self.place:
            return str(self.place)
        return "(only in a hint)" if self.in_hint else "(nowhere before the stub)"


# ---- what a solution uses --------------------------------------------------------------------------------------------


def uses(spec: Exercise) -> list[Use]:
    """The API of a solution, each piece once, in the order in which it appears."""
    text = text_of(spec.reference)
    tree = ast.parse(f"{text.head}\n{text.body}").body[0]
    assert isinstance(tree, ast.FunctionDef)
    found: dict[str, Use] = {}
    own = _own_names(tree)
    for node in _in_order(tree):
        for use in _of_node(node, own):
            found.setdefault(use.name, use)
    return list(found.values())


def _own_names(function: ast.FunctionDef) -> set[str]:
    arguments = [node for node in ast.walk(function) if isinstance(node, ast.arguments)]
    names = {function.name, *(argument.arg for node in arguments for argument in _all(node))}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler):
            names.add(node.name or "")
    return names


def _all(arguments: ast.arguments) -> list[ast.arg]:
    more = [a for a in (arguments.vararg, arguments.kwarg) if a]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]


def _in_order(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of the body, without docstring and annotations."""
    for statement in function.body[1:]:
        yield from ast.walk(statement)


def _of_node(node: ast.AST, own: set[str]) -> Iterator[Use]:
    if isinstance(node, ast.Attribute):
        if node.attr not in PLAIN and not node.attr.startswith("__"):
            yield Use(f".{node.attr}", rf"\.\s*{node.attr}\b|\bimport\b[^\n]*\b{node.attr}\b", node.attr)
        elif node.attr.startswith("__"):
            yield Use(f".{node.attr}", re.escape(node.attr), node.attr)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        if node.id not in own and node.id not in PLAIN:
            yield Use(node.id, rf"\b{node.id}\b", node.id)
    elif isinstance(node, ast.keyword) and node.arg and node.arg not in PLAIN:
        yield Use(f"{node.arg}=", rf"\b{node.arg}\b", node.arg)
    elif isinstance(node, ast.BinOp | ast.UnaryOp | ast.AugAssign):
        if sign := _OPERATORS.get(type(node.op)):
            before, after = (r"(?<![<>])", r"(?![<>])") if len(sign) == 1 else ("", "")
            yield Use(sign, before + re.escape(sign) + after, "")
    elif isinstance(node, ast.Slice) and node.step is not None and not _minus_one(node.step):
        yield Use("[a::b]", r"\[[^\]\n]*:[^\]\n:]*:[^\]\n]*\]")
    elif isinstance(node, ast.Subscript):
        yield from _of_index(node.slice)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _of_format(node.value)
    elif isinstance(node, ast.JoinedStr):  # f"<{n}I"
        yield from _of_format("".join(str(p.value) if isinstance(p, ast.Constant) else "1" for p in node.values))


def _minus_one(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _of_index(index: ast.expr) -> Iterator[Use]:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    for part in parts:
        if isinstance(part, ast.Constant) and part.value is None:
            yield Use("[:, None]", r"\[[^\]\n]*\bNone\b[^\]\n]*\]")
        elif isinstance(part, ast.Constant) and part.value is ...:
            yield Use("[..., ]", r"\[[^\]\n]*\.\.\.[^\]\n]*\]")


def _of_format(text: str) -> Iterator[Use]:
    """A type such as ``<f2``, or the letters of a format of ``struct``."""
    if re.fullmatch(r"[<>][fiu]\d", text):
        yield Use(text, re.escape(text), "")
    elif re.fullmatch(r"[<>=!](\d*[a-zA-Z?])*", text):
        for letter in re.findall(r"[a-zA-Z?]", text):
            inside = rf"[\"'`][<>=!][^\"'`\n]*{re.escape(letter)}[^\"'`\n]*[\"'`]"
            yield Use(f"struct {letter!r}", rf"{inside}|`{re.escape(letter)}`", "")


# ---- where it was introduced -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """One cell as a student sees it: its code, or the code in its prose; the words of its docstring."""

    place: Place
    code: str
    text: str
    stub: str  # the exercise whose stub it is, or ""

    def shows(self, use: Use) -> bool:
        """Whether the cell introduces a use."""
        if re.search(use.pattern, self.code):
            return True
        return bool(re.search(rf"(?<!\w){re.escape(use.word)}\b" if use.word else use.pattern, self.text))


def seen_cells(root: Path) -> list[Seen]:
    """All cells of the students' notebooks, in the order of the course."""
    found = []
    for path in sorted((root / "notebooks").glob("[0-9][0-9]-*.ipynb")):
        for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
            found.append(_seen(cell, Place(path.name[:2], number)))
    return found


def _seen(cell: dict[str, Any], place: Place) -> Seen:
    source = "".join(cell["source"])
    mark = cell["metadata"].get("miniquant", {})
    part = mark.get("part", "")
    if part == "help":
        return Seen(place, "", "", "")
    if cell["cell_type"] == "markdown":
        spans = "\n".join(_SPAN.findall(visible(source)))
        return Seen(place, spans, spans, "")
    if part == "stub":
        head = source.partition('"""')[0]
        return Seen(place, head, docstring(source), mark["exercise"])
    return Seen(place, "" if part == "check" else source, "", "")


def taught(root: Path) -> list[Taught]:
    """Every use of every exercise's solution, in the order of the course."""
    cells = seen_cells(root)
    stubs = {cell.stub: at for at, cell in enumerate(cells) if cell.stub}

    @functools.cache
    def first(use: Use) -> int:
        return next((at for at, cell in enumerate(cells) if cell.shows(use)), len(cells))

    found = []
    for name in exercises():
        if name in stubs:
            spec = exercises()[name]
            hints = Seen(Place("", 0), "\n".join(spec.hints), "\n".join(spec.hints), "")
            for use in uses(spec):
                place = cells[first(use)].place if first(use) <= stubs[name] else None
                found.append(Taught(name, spec.lab, use.name, place, hints.shows(use)))
    return found


def missing(root: Path) -> list[Taught]:
    """The uses that nothing introduces before the stub."""
    return [use for use in taught(root) if use.place is None]


def table(found: list[Taught]) -> list[tuple[str, str, str]]:
    """For each exercise: the lab, the name, and its API with the places where it was introduced.

    >>> table([Taught("f", "03", ".view", Place("01", 4), False), Taught("f", "03", "~", None, True)])
    [('03', 'f', '.view 01[4] · ~ (only in a hint)')]
    """
    lines: dict[tuple[str, str], list[str]] = {}
    for use in found:
        lines.setdefault((use.lab, use.exercise), []).append(f"{use.use} {use.where}")
    return [(lab, name, " · ".join(uses)) for (lab, name), uses in lines.items()]
