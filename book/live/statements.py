"""What the statements of a cell do to names, read from their source."""

from __future__ import annotations

import ast
from collections.abc import Iterable

SHOWS = {"check", "hint", "hexview", "diff", "ribbon", "print", "display", "progress", "board", "speak", "microscope"}


def only_shows(source: str) -> bool:
    """Whether a cell shows something and defines nothing, so that later cells do not need it.

    >>> only_shows("check(pack)"), only_shows("plots.curves(a)"), only_shows("x = 1"), only_shows("p.write_bytes(b'')")
    (True, True, False, False)
    """
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return False
    return all(isinstance(s, ast.Expr) and _shows(s.value) for s in body)


def _shows(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return isinstance(value, ast.Name | ast.Constant)
    if isinstance(value.func, ast.Name):
        return value.func.id in SHOWS
    return isinstance(value.func, ast.Attribute) and ast.unparse(value.func.value) == "plots"


def single(statement: ast.Import | ast.ImportFrom) -> list[ast.Import | ast.ImportFrom]:
    """The statement once for each name that it imports, so that one that is missing takes no other with it."""

    def copy(alias: ast.alias) -> ast.Import | ast.ImportFrom:
        if isinstance(statement, ast.Import):
            return ast.copy_location(ast.Import([alias]), statement)
        return ast.copy_location(ast.ImportFrom(statement.module, [alias], statement.level), statement)

    return [copy(alias) for alias in statement.names]


def bound(statement: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.split(".")[0] for alias in statement.names]
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    return [n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def used(statements: Iterable[ast.stmt]) -> set[str]:
    """Every name that some statements mention."""
    return {n.id for statement in statements for n in ast.walk(statement) if isinstance(n, ast.Name)}


def makes(source: str, name: str) -> bool:
    """Whether a cell binds a name.

    >>> makes("import numpy as np", "np"), makes("print(x)", "x"), makes("for i in (", "i")
    (True, False, False)
    """
    try:
        return any(name in bound(statement) for statement in ast.parse(source).body)
    except SyntaxError:
        return False


def sets_threads(statement: ast.stmt) -> bool:
    """Whether a statement only says how many threads PyTorch may use."""
    return "torch.set_num_threads" in ast.unparse(statement)
