"""Hints are not answers: a hint may name an idea or a tool, and no line of the solution.

A piece of code in a hint is an answer if the solution has it as a whole statement or a returned expression, or as a
part with two operations or more. A call counts as one operation; so do an index, an operator and a comparison. A
statement that is one plain call is no answer. ``np.rint`` names a tool; ``np.rint(w / scale)`` is an answer.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

from ..spec import Exercise, text_of

OPERATIONS = (
    *(ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Subscript, ast.IfExp),
    *(ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp, ast.JoinedStr),
)
ENOUGH = 2  # operations that make a piece of code an answer


def answers(spec: Exercise) -> list[tuple[int, str]]:
    """The pieces of code in the hints that are answers: (1 or 2, the piece)."""
    solution = _pieces(spec)
    return [
        (number, span)
        for number, text in enumerate(spec.hints, 1)
        for span in re.findall(r"`([^`\n]+)`", text)
        if any(piece in solution for piece in _parsed(span))
    ]


def _pieces(spec: Exercise) -> set[str]:
    """The statements and the expressions of a solution that a hint must not hold, in one way of writing."""
    text = text_of(spec.reference)
    function = ast.parse(f"{text.head}\n{text.body}").body[0]
    assert isinstance(function, ast.FunctionDef)
    found = set()
    for statement in function.body[1:]:
        for node in ast.walk(statement):
            if isinstance(node, ast.expr) and operations(node) >= ENOUGH:
                found.add(_written(node))
            elif isinstance(node, ast.stmt) and operations(node) >= (ENOUGH if isinstance(node, ast.Expr) else 1):
                found |= {_written(node), *_head(node)}
            if isinstance(node, ast.Return) and node.value and operations(node.value):
                found.add(_written(node.value))
    return found


def _head(node: ast.stmt) -> Iterator[str]:
    """The first line of a statement that has a block."""
    if getattr(node, "body", None):
        yield ast.unparse(node).split("\n")[0]


def _parsed(span: str) -> Iterator[str]:
    """A piece of a hint in the solution's way of writing: as expression, as statement, as the head of a block."""
    for text in (span, f"{span}\n    pass"):
        try:
            (statement,) = ast.parse(textwrap.dedent(text)).body
        except (SyntaxError, ValueError):
            continue
        if isinstance(statement, ast.Expr):
            yield _written(statement.value)
        elif not isinstance(statement, ast.Return) or statement.value:
            yield _written(statement)
            yield from _head(statement)
        if isinstance(statement, ast.Return) and statement.value:
            yield _written(statement.value)


def _written(node: ast.AST) -> str:
    return ast.unparse(node)


def operations(node: ast.AST) -> int:
    """How many operations a piece of code has.

    >>> [operations(ast.parse(code)) for code in ("np.rint", "np.rint(x)", "np.rint(w / scale)", "x.view(np.uint8)")]
    [0, 1, 2, 1]
    """
    return sum(isinstance(inner, OPERATIONS) for inner in ast.walk(node))
