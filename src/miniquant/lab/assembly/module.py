"""One module out of many notebooks: the functions that pass their checks and what they use, else the reference.

A function is taken if it passes in the module itself, beside the functions that were taken before it. Two notebooks may
use one name for different things: the later one then gets a new name, with the number of its lab.
"""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..catalogue import exercises
from ..checking import evaluate
from ..spec import Exercise
from .sources import Piece, Source, read_source

SUBJECTS = ("container", "writer", "reader", "verify", "size", "deliverable")
NOT_IN_A_MODULE = ("name_the_bug",)  # exercises whose answer is no tool


@dataclass
class Assembly:
    """A module and where its functions come from.

    ``yours`` are the exercises whose function is the student's; ``missing`` says of every other one why it is not, in
    the order of the course; ``labs`` is the number of the lab of each exercise.
    """

    text: str
    yours: list[str]
    missing: dict[str, str]
    labs: dict[str, str] = field(default_factory=dict)


class _Unresolved(Exception):
    """A function uses a name that nothing defines."""


def build(notebooks: Iterable[Path], subjects: Iterable[str] = SUBJECTS) -> Assembly:
    """The module of all exercises of some labs, from their notebooks."""
    known = exercises()
    specs = {spec.name: spec for subject in subjects for spec in known.of_lab(subject)}
    specs = {name: spec for name, spec in specs.items() if name not in NOT_IN_A_MODULE}
    labs = {name: known.lab_of(name) for name in specs}
    wanted = (path for path in notebooks if path.name[:2] in labs.values())  # to parse one takes a tenth of a second
    sources = {source.lab: source for source in map(read_source, wanted)}
    writer = _Writer(specs, labs, sources)
    taken: list[str] = []
    missing: dict[str, str] = {}
    for name, spec in specs.items():
        reason = _reason(writer, spec, taken)
        if reason:
            missing[name] = reason
        else:
            taken.append(name)
    return Assembly(writer.text(taken, missing), taken, missing, labs)


def _reason(writer: _Writer, spec: Exercise, taken: list[str]) -> str:
    """Why a student's function cannot be taken; empty if it can."""
    source = writer.sources.get(writer.labs[spec.name])
    if source is None or source.problem:
        return source.problem if source else f"there is no notebook of lab {writer.labs[spec.name]}"
    if spec.name not in source.exercises:
        return "the notebook has no function for it"
    try:
        module = run(writer.text([*taken, spec.name], {}))
    except _Unresolved as error:
        return str(error)
    except Exception as error:
        return f"its cells do not run by themselves: {type(error).__name__}: {str(error)[:120]}"
    report = evaluate(spec, module[spec.name])
    if report.status == "not attempted":
        return "not written yet"
    return "" if report.passed else report.what


def run(text: str, name: str = "gguf_io") -> dict[str, Any]:
    """The names that a module defines."""
    module = types.ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module.__dict__


class _Writer:
    """Makes the text of the module for any choice of functions."""

    def __init__(self, specs: Mapping[str, Exercise], labs: Mapping[str, str], sources: Mapping[str, Source]) -> None:
        self.specs, self.labs, self.sources = specs, labs, sources

    def text(self, taken: list[str], missing: Mapping[str, str]) -> str:
        """The module: its header, the imports, the references, and each lab's functions with what they use."""
        needed: dict[str, dict[str, list[Piece]]] = {}  # lab -> name -> pieces
        for name in taken:
            self._need(self.labs[name], self.sources[self.labs[name]].called[name], needed)
        renamed = self._clashes(needed)
        imports: list[str] = []
        parts: list[str] = []
        for lab in sorted(needed):
            pieces = {p.order: p for found in needed[lab].values() for p in found if p.kind != "import"}
            texts = [self._renamed(lab, self._shown(pieces[order]), renamed) for order in sorted(pieces)]
            if any(piece.kind == "answers" for piece in pieces.values()):
                imports.append("from types import SimpleNamespace")
            imports += [p.text for p in self.sources[lab].stars]
            for name, found in needed[lab].items():
                new = renamed.get((lab, name))
                imports += [f"{_unaliased(p.text)} as {new}" if new else p.text for p in found if p.kind == "import"]
            own = [n for n in taken if self.labs[n] == lab]
            aliases = [f"{n} = {self.sources[lab].called[n]}" for n in own if self.sources[lab].called[n] != n]
            if texts:
                parts.append(f"# ---- lab {lab}\n\n\n" + "\n\n\n".join([*texts, *aliases]))
        others = [name for name in self.specs if name not in taken]
        references = [f"from {self.specs[n].reference.__module__} import {n}  # lab {self.labs[n]}" for n in others]
        blocks = [self._header(taken, missing), "\n".join(_sorted(imports))]
        if references:
            note = "# The reference stands in for these. Write them in the labs, and assemble again."
            blocks.append("\n".join([note, *references]))
        blocks.append(f"REFERENCE = {tuple(others)!r}  # not mine")
        return "\n\n".join(block for block in [*blocks, *parts] if block) + "\n"

    def _need(self, lab: str, name: str, needed: dict[str, dict[str, list[Piece]]]) -> None:
        """Add a name of a lab, and all that it uses."""
        here = needed.setdefault(lab, {})
        if name in here:
            return
        source = self.sources[lab]
        marked = next((key for key, called in source.called.items() if called == name), None)
        here[name] = [source.exercises[marked]] if marked else source.names[name]
        for used in sorted({u for piece in here[name] for u in piece.uses}):
            if self._is_course(lab, used):
                continue
            if used in source.names:
                self._need(lab, used, needed)
            elif not source.stars:
                raise _Unresolved(f"it uses {used!r}, which no cell of the notebook of lab {lab} defines")

    def _is_course(self, lab: str, name: str) -> bool:
        """Whether a name in a lab means an exercise of the course: its own, or one that it got from another lab."""
        if name not in self.specs:
            return False
        pieces = self.sources[lab].names.get(name, [])
        own = name in self.sources[lab].called.values()
        return own or not pieces or pieces[0].kind == "value" or (self.labs[name] == lab and pieces[0].kind != "import")

    def _clashes(self, needed: Mapping[str, Mapping[str, list[Piece]]]) -> dict[tuple[str, str], str]:
        """New names for what two labs call alike: (lab, name) -> new name."""
        owner: dict[str, str] = {name: "" for name in [*self.specs, "REFERENCE"]}
        renamed = {}
        for lab in sorted(needed):
            mine = set(self.sources[lab].called.values())
            for name, pieces in needed[lab].items():
                text = "\n".join(piece.text for piece in pieces)
                if name in self.specs and self.labs[name] == lab and name in mine:
                    continue
                if owner.setdefault(name, text) != text:
                    renamed[lab, name] = f"{name}_lab{lab}"
        return renamed

    def _renamed(self, lab: str, text: str, renamed: Mapping[tuple[str, str], str]) -> str:
        """A piece of a lab with the new names in it."""
        for (owner, name), new in renamed.items():
            if owner == lab and re.search(rf"\b{name}\b", text):
                text = rename(text, name, new)
        return text

    def _shown(self, piece: Piece) -> str:
        """A piece as the module has it: what came from other notebooks is in the module itself."""
        if piece.kind != "answers":
            return piece.text
        labs = set(re.findall(r"""["'](\d\d)-""", piece.text))
        names = [name for name in self.specs if self.labs[name] in labs]
        return f"{next(iter(piece.binds))} = SimpleNamespace({', '.join(f'{n}={n}' for n in names)})"

    def _header(self, taken: list[str], missing: Mapping[str, str]) -> str:
        lines = [f"GGUF-lite: write, read, verify and count. {len(taken)} of {len(self.specs)} functions are mine.", ""]
        if missing:
            lines += ["The reference stands in for:", ""]
            lines += [f"* {name} (lab {self.labs[name]}): {_one_line(reason)}" for name, reason in missing.items()]
            lines += [""]
        lines += ["`miniquant assemble` made this file from my notebooks. It makes it anew when I run it again."]
        body = "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''")
        return f'"""{body}\n"""'


def rename(text: str, name: str, new: str) -> str:
    """A statement in which the global ``name`` is called ``new``. Raises ``_Unresolved`` if a scope has it as local.

    >>> rename("def f(x):\\n    return size(x.size)", "size", "size_lab09")
    'def f(x):\\n    return size_lab09(x.size)'
    """
    tree = ast.parse(text)
    local = {a.arg for n in ast.walk(tree) if isinstance(n, ast.arguments) for a in [*n.args, *n.kwonlyargs]}
    if name in local or any(isinstance(n, ast.Global) and name in n.names for n in ast.walk(tree)):
        raise _Unresolved(f"two labs use the name {name!r}, and here it is also a parameter; give it another name")
    lines = text.split("\n")
    places = [(n.lineno, n.col_offset) for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            line = lines[node.lineno - 1]
            places.append((node.lineno, len(line[: line.index(name, line.index(" "))].encode())))
    for number, column in sorted(places, reverse=True):
        before = lines[number - 1].encode()
        after = before[:column] + new.encode() + before[column + len(name.encode()) :]
        lines[number - 1] = after.decode()
    return "\n".join(lines)


def _unaliased(text: str) -> str:
    return text.split(" as ")[0]


def _sorted(imports: Iterable[str]) -> list[str]:
    """Each import once: the standard library's and other plain ones first."""
    return sorted(set(imports), key=lambda line: (line.startswith("from"), line))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:199] + "…"
