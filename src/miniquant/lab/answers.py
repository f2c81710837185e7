"""The functions that a student wrote in another lab, so that a milestone can put them together with this lab's."""

from __future__ import annotations

import ast
import contextlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..core.errors import MiniquantError
from .catalogue import exercises
from .checking import evaluate
from .notebook import Step, definitions, read_code


def answers(notebook: str | os.PathLike[str]) -> SimpleNamespace:
    """Every exercise of a lab as a function: the student's own where its check passes, the reference elsewhere.

    notebook: a path that begins with the lab's number, ``06-writer.ipynb``. ``yours`` lists the student's own by name.
    The notebook is not run: only its ``definitions`` are (imports, functions, classes, constants). A notebook that is
    missing or that nobody can read gives references only.

    >>> lab = answers("06-not-there.ipynb")
    >>> lab.pack_int4.__module__, lab.yours
    ('miniquant.lessons.writer.pack_int4', [])
    """
    path = Path(notebook)
    specs = {name: spec for name, spec in exercises().items() if spec.lab == path.name[:2]}
    scope: dict[str, Any] = {"__name__": "answers", **{name: spec.reference for name, spec in specs.items()}}
    for step in _definitions(path):
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
