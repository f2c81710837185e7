"""Grade a folder of submitted notebooks: a process for each, a row for each student, a column for each exercise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ...core.errors import MiniquantError
from .draw import new_seed
from .judge import Desk, grade_notebook
from .results import Result, result_paths, write_results

__all__ = ["Desk", "Result", "grade", "grade_notebook", "new_seed", "result_paths", "submissions", "write_results"]


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
    track: Callable[[Iterable[tuple[str, Path]], int], Iterable[tuple[str, Path]]] | None = None,
    keep: Callable[[list[Result]], object] | None = None,
    *,
    seed: int | None = None,
    trust: bool = False,
) -> list[Result]:
    """Grade every notebook below ``folder``.

    ``track`` may wrap the work in a progress bar: (items, count) -> items. ``keep`` is called after each notebook with
    the results of all students so far, so that nothing is lost if the grading is stopped. ``seed`` is that of the
    random cases, a new one if it is None. ``trust``: also where this system builds no walls.
    """
    found = submissions(folder)
    work = [(student, path) for student, paths in found.items() for path in paths]
    results: dict[str, Result] = {}
    desk = Desk(new_seed() if seed is None else seed, megabytes, trust)
    try:
        for student, path in track(work, len(work)) if track else work:
            if student not in results:
                results[student] = Result(student, waiting=[path.name for path in found[student]])
            grade_notebook(path, results[student], desk, seconds)
            results[student].waiting.remove(path.name)
            if keep:
                keep(list(results.values()))
    finally:
        desk.close()
    return list(results.values())
