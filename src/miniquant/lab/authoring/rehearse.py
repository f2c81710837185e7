"""Run a student's notebook with some stubs answered: does the lab still run after an answer that its check takes?"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import MiniquantError


@dataclass(frozen=True)
class Raised:
    """A cell that raised: its number in the notebook, its first line, and the error."""

    cell: int
    line: str
    error: str

    def __str__(self) -> str:
        return f"cell {self.cell}, {self.line!r}: {self.error}"


def runs_with(notebook: str | os.PathLike[str], answers: Mapping[str, str], seconds: int = 600) -> list[Raised]:
    """Run a notebook with other texts in its stubs; the cells that raise, and none if it runs to its end.

    answers: the name of an exercise -> the text of its function, without the decorator. ``check`` reports and never
    raises, so what is found are cells that use the answer. The notebook runs in a temporary folder.

    Raises ``MiniquantError`` for an exercise that the notebook does not have.
    """
    import nbformat
    from nbclient import NotebookClient

    cells = nbformat.read(os.fspath(notebook), as_version=4)  # type: ignore[no-untyped-call]  # it has no types
    stubs = {c.metadata["miniquant"]["exercise"]: c for c in cells.cells if _is_stub(c.metadata.get("miniquant", {}))}
    for name, source in answers.items():
        if name not in stubs:
            raise MiniquantError(f"{Path(notebook).name} has no exercise {name!r}; it has {', '.join(stubs)}")
        stubs[name].source = f'@exercise("{name}")\n{source.strip()}\n'
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            cells,
            timeout=seconds,
            kernel_name="python3",
            allow_errors=True,
            resources={"metadata": {"path": folder}},
        )
        before = os.environ.get("MINIQUANT_PROGRESS")
        os.environ["MINIQUANT_PROGRESS"] = os.devnull
        try:
            client.execute()
        finally:
            if before is None:
                del os.environ["MINIQUANT_PROGRESS"]
            else:
                os.environ["MINIQUANT_PROGRESS"] = before
    return [
        Raised(number, cell.source.strip().split("\n")[0], f"{output.ename}: {output.evalue}")
        for number, cell in enumerate(cells.cells)
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    ]


def _is_stub(mark: Mapping[str, str]) -> bool:
    return mark.get("part") == "stub"
