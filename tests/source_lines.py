"""The statements of a source, much sooner than by ``ast.walk``: expressions are most of a tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def statements(of: ast.AST) -> Iterator[ast.AST]:
    """All that stand in it, however deep, and what holds some (a handler, a case)."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        inside = getattr(of, field, ())
        for node in inside if isinstance(inside, list) else ():  # the body of a lambda is an expression
            yield node
            yield from statements(node)
