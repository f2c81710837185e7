"""Places in the text of a function, and changes at these places that can be made and undone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# how telling a change is: of several that give the same results, the one with the smallest rank is said
SPECIFIC, NUMBER, STEP, CONDITION, STATEMENT, NAME = 1, 2, 3, 4, 5, 6


@dataclass(frozen=True, eq=False)
class Place:
    """Where a node stands: ``getattr(parent, field)``, or the item ``index`` of it if that is a list."""

    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST

    def put(self, node: ast.AST) -> None:
        """Let another node stand here."""
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


@dataclass(frozen=True, eq=False)
class Change:
    """Other nodes at some places, and what a solution with them does: it completes "a solution that …"."""

    phrase: str
    rank: float
    edits: tuple[tuple[Place, ast.AST], ...]

    @contextmanager
    def made(self) -> Iterator[None]:
        """While the block runs, the tree is changed; the new nodes get places in the text, as ``compile`` wants.

        A node of the text itself, which may replace a larger one, keeps its place.
        """
        for place, node in self.edits:
            located = node if hasattr(node, "lineno") else ast.copy_location(node, place.node)
            place.put(ast.fix_missing_locations(located))
        try:
            yield
        finally:
            for place, _ in reversed(self.edits):
                place.put(place.node)


def places(function: ast.FunctionDef) -> list[Place]:
    """All places in the body of a function, without its docstring, annotations and nested definitions' heads."""
    found: list[Place] = []

    def visit(parent: ast.AST) -> None:
        for field, value in ast.iter_fields(parent):
            if field in ("annotation", "returns", "decorator_list", "type_comment"):
                continue
            if isinstance(value, list):
                for index, node in enumerate(value):
                    if isinstance(node, ast.AST) and not _is_docstring(node):
                        found.append(Place(parent, field, index, node))
                        visit(node)
            elif isinstance(value, ast.AST):
                found.append(Place(parent, field, None, value))
                visit(value)

    for index, node in enumerate(function.body):
        if not _is_docstring(node):
            found.append(Place(function, "body", index, node))
            visit(node)
    return found


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


UNKNOWN = "one value"  # for names that a student does not know
COMMON = {"the", "and", "one", "for", "all", "of", "in", "to", "is", "it", "as", "at", "value", "values", "out", "out_"}


class Speaker:
    """Says what a part of a solution is, without showing the solution: only names that the student knows."""

    def __init__(self, names: tuple[str, ...], docstring: str) -> None:
        words = set(re.findall(r"[A-Za-z_]\w*", docstring))
        self.known = {*names, *(word for word in words if len(word) > 1)} - COMMON

    def name(self, name: str) -> str:
        """The name, if it is a parameter or a word of the docstring; "one value" for any other."""
        return f"`{name}`" if name in self.known else UNKNOWN

    def __call__(self, node: ast.AST) -> str:
        """A number, a known name, ``len(name)``, or "one value"."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return str(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return f"-{node.operand.value!r}"
        if isinstance(node, ast.Name):
            return self.name(node.id)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
            inner = self(node.args[0]) if node.args else ""
            return f"`len({inner.strip('`')})`" if inner.startswith("`") else "a length"
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.value, ast.Name):
            inner = self.name(node.value.id)
            return f"a part of {inner}" if inner.startswith("`") else UNKNOWN
        if isinstance(node, ast.Call):
            return f"what `{called(node)}(…)` gives" if called(node) else UNKNOWN
        return UNKNOWN


def called(node: ast.Call) -> str:
    """The last name of what is called: ``rint`` for ``np.rint(x)``."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""
