"""The functions that a student wrote in other labs, so that a lab can put them together with its own."""

from __future__ import annotations

import ast
import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..core.errors import MiniquantError
from .catalogue import exercises
from .checking import evaluate
from .notebook import Step, definitions, read_code


def answers(*notebooks: str | os.PathLike[str]) -> SimpleNamespace:
    """Every exercise of some labs as a function: the student's own where its check passes, the reference elsewhere.

    notebooks: paths that begin with a lab's number, ``08-container.ipynb``, in the order of the course: the functions
    of a later notebook may call those of an earlier one. ``yours`` lists the student's own by name.
    The notebooks are not run: only their ``definitions`` are (imports, functions, classes, constants). A notebook that
    is missing or that nobody can read gives references only.

    >>> lab = answers("08-not-there.ipynb", "09-not-there.ipynb")
    >>> lab.pack_int4.__module__, lab.header_bytes.__module__, lab.yours
    ('miniquant.lessons.writer.pack_int4', 'miniquant.lessons.container.header_bytes', [])
    """
    known, paths = exercises(), [Path(notebook) for notebook in notebooks]
    numbers = {path.name[:2] for path in paths}
    specs = {name: known[name] for name in known if known.lab_of(name) in numbers}
    scope: dict[str, Any] = {"__name__": "answers", **{name: spec.reference for name, spec in specs.items()}}
    for path in paths:
        steps = _definitions(path)
        for name in _names(steps) & set(known) - set(scope):  # the exercise of a lab that was not asked for
            scope[name] = known[name].reference
        for step in steps:
            with contextlib.suppress(Exception):  # what it would have defined is missing, and the reference stands in
                exec(compile(ast.Module([step.code], []), path.name, "exec"), scope)
    yours = []
    for name, spec in specs.items():
        student = getattr(scope[name], "student", None)
        if student and evaluate(spec, student).passed:
            yours.append(name)
        else:
            scope[name] = spec.reference
    return SimpleNamespace(**{name: scope[name] for name in specs}, yours=yours)


def _definitions(path: Path) -> list[Step]:
    try:
        return list(definitions(read_code(path).steps))
    except (MiniquantError, OSError):
        return []


def _names(steps: Iterable[Step]) -> set[str]:
    """The names that the steps use."""
    return {node.id for step in steps for node in ast.walk(step.code) if isinstance(node, ast.Name)}
