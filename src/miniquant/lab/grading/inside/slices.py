"""Which statements of a notebook its answers depend on."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ...notebook import Step

ANY = {"exec", "globals", "setattr", "vars"}
BLOCKS = (ast.Expr, ast.For, ast.While, ast.With, ast.If, ast.Try)  # they may change what they only name


def changed_by(step: Step, fixed: Iterable[str] = ()) -> set[str]:
    """The names that a statement binds; and those that it names where it may change them, but for ``fixed`` ones.

    ``*`` is among them if it may bind any name.
    """
    nodes = list(ast.walk(step.code))
    found = {alias.asname or alias.name.split(".")[0] for node in nodes
             if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}  # fmt: skip
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            found |= {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
    if _names(step) & ANY:
        found.add("*")
    if isinstance(step.code, BLOCKS):
        found |= _names(step) - set(fixed)
    return found


def relevant(steps: list[Step]) -> list[Step]:
    """The statements on which the functions marked with ``@exercise`` depend, in order.

    >>> from miniquant.lab.notebook import code_of
    >>> cell = "import math, json\\nA = []\\nB = 2\\nA.append(B)\\nprint(json)\\n@exercise('f')\\ndef f(): return A"
    >>> data = {"cells": [{"cell_type": "code", "source": cell}]}
    >>> import json
    >>> [step.code.lineno for step in relevant(code_of(json.dumps(data).encode(), "a.ipynb").steps)]
    [2, 3, 4, 7]
    """
    kinds = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    fixed = {name for step in steps if isinstance(step.code, kinds) for name in changed_by(step)}
    chosen = {place for place, step in enumerate(steps) if _is_answer(step)}
    wanted = {name for place in chosen for name in _names(steps[place])}
    while True:
        more = {place for place, step in enumerate(steps) if changed_by(step, fixed) & wanted} - chosen
        if not more:
            return [step for place, step in enumerate(steps) if place in chosen]
        chosen |= more
        wanted |= {name for place in more for name in _names(steps[place])}


def _names(step: Step) -> set[str]:
    return {node.id for node in ast.walk(step.code) if isinstance(node, ast.Name)}


def _is_answer(step: Step) -> bool:
    """Whether a statement uses the name ``exercise``, whatever it is, or may bind any name."""
    if isinstance(step.code, ast.Import | ast.ImportFrom):
        return any(alias.name == "*" for alias in step.code.names)
    return bool(_names(step) & {"exercise", *ANY})
