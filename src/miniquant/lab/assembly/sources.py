"""What a notebook defines: each name with the statements that make it, and the names that these use.

Nothing is run. Imports, functions, classes and assignments define a name; ``TABLE[3] = 1``, ``NAMES.append("a")`` and a
loop that does such things change one.
"""

from __future__ import annotations

import ast
import builtins
import os
import symtable
from dataclasses import dataclass, field
from pathlib import Path

from ...core.errors import MiniquantError
from ..notebook import Step, read_code

BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__"}


@dataclass(frozen=True)
class Piece:
    """One statement as text. ``order`` is its place in the notebook; ``uses`` are the global names in it."""

    order: int
    kind: str  # "import", "function", "class", "value", "answers" or "change"
    text: str
    binds: frozenset[str]
    uses: frozenset[str]


@dataclass
class Source:
    """The definitions of one notebook.

    ``names`` maps a name to the pieces that make it: a definition, then its changes. ``exercises`` maps the name of an
    exercise to the student's function for it, without the decorator; ``called`` says what that function is called.
    ``problem`` says why a notebook could not be read; it is empty for a good one.
    """

    lab: str
    names: dict[str, list[Piece]] = field(default_factory=dict)
    exercises: dict[str, Piece] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    stars: list[Piece] = field(default_factory=list)  # from x import *
    problem: str = ""


def read_source(path: str | os.PathLike[str]) -> Source:
    """The definitions of a notebook whose name begins with the lab's number. A missing one defines nothing."""
    found = Source(Path(path).name[:2])
    try:
        code = read_code(path)
    except FileNotFoundError:
        found.problem = f"{Path(path).name} is missing"
        return found
    except (MiniquantError, OSError) as error:
        found.problem = str(error)
        return found
    for order, step in enumerate(code.steps):
        _add(found, step, order)
    return found


def _add(found: Source, step: Step, order: int) -> None:
    statement = step.code
    if isinstance(statement, ast.Import | ast.ImportFrom):
        _add_imports(found, statement, order)
    elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
        kind = "function" if isinstance(statement, ast.FunctionDef) else "class"
        name = exercise_of(statement)
        text = _without_marks(step.text)
        if name:
            text = _without_decorator(statement, text)
        piece = Piece(order, kind, text, frozenset({statement.name}), uses(text) - {statement.name})
        found.names[statement.name] = [piece]
        if name:
            found.exercises[name], found.called[name] = piece, statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign) and (bound := _bound(statement)):
        fetches = _is_call_of("answers", statement.value) and len(bound) == 1
        needs = frozenset() if fetches else uses(step.text) - bound
        piece = Piece(order, "answers" if fetches else "value", step.text, frozenset(bound), needs)
        for name in bound:
            found.names[name] = [piece]
    else:
        for name in _changed(statement) & set(found.names):
            piece = Piece(order, "change", step.text, frozenset({name}), uses(step.text) - {name})
            found.names[name] = [*found.names[name], piece]


def _add_imports(found: Source, statement: ast.Import | ast.ImportFrom, order: int) -> None:
    for alias in statement.names:
        if isinstance(statement, ast.ImportFrom) and statement.level:
            continue  # a notebook has no package to be relative to
        single = (
            ast.Import([alias])
            if isinstance(statement, ast.Import)
            else ast.ImportFrom(statement.module, [alias], statement.level)
        )
        text = ast.unparse(single)
        name = alias.asname or alias.name.split(".")[0]
        piece = Piece(order, "import", text, frozenset({name}), frozenset())
        if alias.name == "*":
            found.stars.append(piece)
        else:
            found.names[name] = [piece]


def exercise_of(statement: ast.stmt) -> str:
    """The exercise that a function is marked with, or an empty text."""
    if isinstance(statement, ast.FunctionDef):
        for decorator in statement.decorator_list:
            if _is_call_of("exercise", decorator):
                assert isinstance(decorator, ast.Call)
                first = decorator.args[0] if decorator.args else None
                return str(first.value) if isinstance(first, ast.Constant) else ""
    return ""


def _is_call_of(name: str, value: ast.expr | None) -> bool:
    if not isinstance(value, ast.Call):
        return False
    function = value.func
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) == name


def _without_decorator(statement: ast.FunctionDef | ast.ClassDef, text: str) -> str:
    """The function as it was typed, without ``@exercise(...)``."""
    lines = text.split("\n")
    tree = ast.parse(text).body[0]
    assert isinstance(tree, ast.FunctionDef)
    marks = [d for d in tree.decorator_list if _is_call_of("exercise", d)]
    gone = {n for d in marks for n in range(d.lineno, (d.end_lineno or d.lineno) + 1)}
    return "\n".join(line for number, line in enumerate(lines, 1) if number not in gone)


def _without_marks(text: str) -> str:
    return "\n".join(
        line for line in text.split("\n") if line.strip() not in ("### BEGIN SOLUTION", "### END SOLUTION")
    )


def uses(text: str) -> frozenset[str]:
    """The global names that a statement uses, wherever it stands in it; builtins left out.

    >>> sorted(uses("def f(x, y=START):\\n    z = np.abs(x)\\n    return [len(z) + OFFSET for _ in y]"))
    ['OFFSET', 'START', 'np']
    """
    found: set[str] = set()

    def visit(table: symtable.SymbolTable, top: bool) -> None:
        for symbol in table.get_symbols():
            if symbol.is_referenced() if top else symbol.is_global():
                found.add(symbol.get_name())
        for child in table.get_children():
            visit(child, False)

    visit(symtable.symtable(text, "cell", "exec"), True)
    return frozenset(found - BUILTINS)


def _bound(statement: ast.Assign | ast.AnnAssign) -> set[str]:
    """The names that an assignment binds; empty if it also stores elsewhere, or has no value."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if statement.value is None:
        return set()
    bound: set[str] = set()
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Attribute | ast.Subscript):
                return set()
            if isinstance(node, ast.Name):
                bound.add(node.id)
    return bound


def _changed(statement: ast.stmt) -> set[str]:
    """The names whose values a statement changes: ``x += 1``, ``x[3] = 1``, ``x.append(1)``, also inside a loop."""
    found: set[str] = set()
    if not isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr | ast.For):
        return found
    for node in ast.walk(statement):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            found |= _root(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value.func
            if isinstance(call, ast.Attribute):
                found |= _root(call)
    return found


def _root(node: ast.expr) -> set[str]:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()
