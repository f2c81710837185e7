"""The code of a notebook as statements, for whoever runs it outside Jupyter: the grader and the milestones.

IPython itself translates what is not Python (magics, ``!command``, ``name?``). What it translates them to is then taken
out: a magic does nothing and its value is None. Only ``%time`` and the magics in ``RUN_THEIR_CELL`` leave the code
that they would have run.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import MiniquantError

RUN_THEIR_CELL = ("time", "capture", "prun")  # cell magics whose cell defines what it defines without them


@dataclass(frozen=True)
class Step:
    """One top-level statement. ``place`` names it for people: ``code cell 3, line 2``. ``text`` is what was typed."""

    place: str
    code: ast.stmt
    text: str = ""


@dataclass
class Code:
    """The statements of a notebook in order, and one line for each cell that could not be read."""

    steps: list[Step] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def read_code(path: str | os.PathLike[str]) -> Code:
    """The code of a notebook. A cell that is no Python is lost, and no other.

    Raises ``MiniquantError`` if the file is no notebook, ``OSError`` if it cannot be read.
    """
    return code_of(Path(path).read_bytes(), os.path.basename(os.fsdecode(path)))


def code_of(data: bytes, name: str) -> Code:
    """The code of a notebook from its bytes; ``name`` is what an error calls it. As ``read_code``."""
    try:
        cells = json.loads(data.decode("utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MiniquantError(
            f"{name} is no notebook ({type(error).__name__}: {error}); expected JSON with a list of cells"
        ) from error
    code = Code()
    for number, source in enumerate(sources, 1):
        try:
            statements = _statements_and_texts(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            # UnicodeEncodeError is a ValueError; a cell that is too deep raises one of the last two
            code.lost.append(f"code cell {number} is left out: {type(error).__name__}: {error}")
            continue
        code.steps += [Step(f"code cell {number}, line {s.lineno}", s, text) for s, text in statements]
    return code


def statements_of(source: str) -> list[ast.stmt]:
    """The top-level statements of a cell, without its magics.

    Raises ``SyntaxError``, ``ValueError``, ``RecursionError`` or ``MemoryError`` if the cell cannot be parsed.

    >>> [ast.unparse(s) for s in statements_of("import numpy as np\\nnp.zeros?\\nfiles = %who_ls\\n%time x = 3")]
    ['import numpy as np', 'files = None', 'x = 3']
    """
    return [statement for statement, _ in _statements_and_texts(source)]


def _statements_and_texts(source: str) -> list[tuple[ast.stmt, str]]:
    """The statements of a cell, and each as it was typed; one with a magic in it is written anew, without the magic."""
    from IPython.core.inputtransformer2 import TransformerManager

    transformer = TransformerManager()
    python = transformer.transform_cell(source)
    found: list[tuple[ast.stmt, str]] = []
    for statement in ast.parse(python).body:
        magic = _magic(statement.value) if isinstance(statement, ast.Expr) else None
        if magic is None:
            text = _typed(python, statement)
            clean = ast.fix_missing_locations(_WithoutMagics().visit(statement))
            found.append((clean, ast.unparse(clean) if "get_ipython" in text else text))
        elif (inside := _code_inside(magic)) is not None:
            found += _statements_and_texts(inside)
    return found


def _typed(source: str, statement: ast.stmt) -> str:
    """The lines of a statement, its decorators included; a statement beside others on a line is written anew."""
    decorators = getattr(statement, "decorator_list", [])
    lines = source.split("\n")
    first = min([statement.lineno, *(d.lineno for d in decorators)])
    assert statement.end_lineno is not None
    text = "\n".join(lines[first - 1 : statement.end_lineno])
    try:
        alone = len(ast.parse(text).body) == 1
    except SyntaxError:
        alone = False
    return text if alone else ast.unparse(statement)


def _magic(value: ast.expr) -> tuple[str, list[str]] | None:
    """The method and the texts of a call ``get_ipython().run_line_magic("time", "x = 3")``; None for anything else."""
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return None
    shell = value.func.value
    if not (isinstance(shell, ast.Call) and isinstance(shell.func, ast.Name) and shell.func.id == "get_ipython"):
        return None
    return value.func.attr, [str(a.value) for a in value.args if isinstance(a, ast.Constant)]


def _code_inside(magic: tuple[str, list[str]]) -> str | None:
    """The Python code that a magic runs in the notebook, or None."""
    match magic:
        case ("run_cell_magic", [name, _, body]) if name in RUN_THEIR_CELL:
            return body
        case ("run_line_magic", ["time", line]):
            return line
    return None


class _WithoutMagics(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        return ast.Constant(None) if _magic(node) else self.generic_visit(node)


def definitions(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps that define something and do nothing else, so that they take no time and change nothing outside.

    They are imports, functions, classes, literal constants, and calls that change such a constant:
    ``MASKS.append(15)``.
    """
    constants: set[str] = set()
    for step in steps:
        statement = step.code
        if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
            yield step
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            if statement.value is not None and _literal(statement.value):
                constants |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
                yield step
        elif isinstance(statement, ast.Expr) and _changes(statement.value, constants):
            yield step


def _changes(value: ast.expr, constants: set[str]) -> bool:
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return False
    arguments = [*value.args, *(keyword.value for keyword in value.keywords)]
    owner = value.func.value
    return isinstance(owner, ast.Name) and owner.id in constants and all(map(_literal, arguments))


def _literal(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True
