"""Grade a folder of submitted notebooks: a process for each, a row for each student, a column for each exercise."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...core.errors import MiniquantError
from . import farm
from .draw import new_seed
from .judge import Desk, grade_notebook, read_submission
from .results import Result, result_paths, write_results
from .rows import RowsOnDisk, merge, read_rows

__all__ = [
    "Desk",
    "Result",
    "RowsOnDisk",
    "grade",
    "grade_notebook",
    "merge",
    "new_seed",
    "read_rows",
    "result_paths",
    "submissions",
    "write_results",
]


def submissions(folder: Path) -> dict[str, list[Path]]:
    """Student -> notebooks. In ``FOLDER/student/…`` the subfolder is the student, else the file's name is.

    Raises ``MiniquantError`` if the folder holds no notebook.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*.ipynb")):
        inside = path.relative_to(folder)
        if any(part.startswith(".") for part in inside.parts):
            continue  # .ipynb_checkpoints
        if not path.is_file():
            continue
        found.setdefault(inside.parts[0] if len(inside.parts) > 1 else path.stem, []).append(path)
    if not found:
        raise MiniquantError(f"no notebook (*.ipynb) in {folder}; expected {folder}/STUDENT/09-writer.ipynb")
    return found


def grade(
    folder: Path,
    seconds: float = 120,
    megabytes: int = 4096,
    keep: Callable[[Result], object] | None = None,
    *,
    seed: int | None = None,
    trust: bool = False,
    wasm: str | None = None,
    jobs: int = 1,
    shard: tuple[int, int] = (1, 1),
    done: dict[str, Result] | None = None,
    dask: str = "",
) -> list[Result]:
    """Grade every notebook below ``folder``; the results by the names of the students.

    ``keep`` is called with each student's result as it comes. ``seed`` is that of the random cases, a new one if it is
    None. ``trust``: also where this system builds no walls. ``wasm``: in WebAssembly, with the Pyodide of that folder.
    ``jobs``: so many processes grade. ``shard``: (2, 3) is the second third of the students. ``done``: results that
    stay if their notebooks and their seed are the same. ``dask``: the address of a scheduler whose workers grade.
    """
    seed = new_seed() if seed is None else seed
    students = list(submissions(folder).items())[shard[0] - 1 :: shard[1]]
    kept = {name: result for name, result in (done or {}).items() if _is_same(result, dict(students), folder, seed)}
    work = [
        (name, [(p.relative_to(folder).as_posix(), p) for p in paths]) for name, paths in students if name not in kept
    ]
    options = {"seed": seed, "seconds": seconds, "megabytes": megabytes, "trust": trust, "wasm": wasm}
    if dask:
        results = farm.on_dask(work, options, dask)
    elif jobs > 1:
        results = farm.on_this_machine(work, options, jobs)
    else:
        results = _in_turn(work, options)
    found = dict(kept)
    for result in results:
        found[result.student] = result
        if keep:
            keep(result)
    return [found[student] for student, _ in students]


def _is_same(result: Result, students: dict[str, list[Path]], folder: Path, seed: int) -> bool:
    """Whether a result is of the notebooks that are there now, and of this seed."""
    if result.student not in students or result.seed != seed:
        return False
    found = {}
    for path in students[result.student]:
        try:
            found[path.relative_to(folder).as_posix()] = hashlib.sha256(read_submission(path)).hexdigest()
        except (MiniquantError, OSError):
            return False
    return found == result.notebooks


def _in_turn(work: farm.Work, options: dict[str, Any]) -> Iterator[Result]:
    """Grade in this process, one student after the other."""
    desk = Desk(options["seed"], options["megabytes"], options["trust"], options["wasm"])
    try:
        for student, notebooks in work:
            result = Result(student, seed=desk.seed)
            for name, path in notebooks:
                grade_notebook(path, result, desk, options["seconds"])
                try:
                    result.notebooks[name] = hashlib.sha256(read_submission(path)).hexdigest()
                except (MiniquantError, OSError):
                    continue
            yield result
    finally:
        desk.close()
