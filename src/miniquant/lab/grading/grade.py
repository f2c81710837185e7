"""Grade a folder of submitted notebooks: a process for each, a row for each student, a column for each exercise."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ...core.errors import MiniquantError, WriteError
from ...core.files import atomic_write
from ...core.text import visible
from ..catalogue import exercises
from .process import run_notebook

MUCH = 1 << 20  # bytes that a notebook may print before its row says so
RANK = ["missing", "not attempted", "crashed", "timed out", "failed", "passed"]  # of two answers the better counts


@dataclass
class Result:
    """One student's results: exercise -> {"status", "what", "got", "mistake"}, and what went wrong with notebooks.

    ``waiting`` names the notebooks that are not graded yet.
    """

    student: str
    answers: dict[str, dict[str, str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)

    def status(self, exercise: str) -> str:
        """One of ``RANK``."""
        return self.answers.get(exercise, {}).get("status", "missing")

    def add(self, exercise: str, status: str, what: str = "", got: str = "", mistake: str = "") -> None:
        """Keep an answer, unless a better one is there."""
        if RANK.index(status) >= RANK.index(self.status(exercise)):
            self.answers[exercise] = {"status": status, "what": what, "got": got, "mistake": mistake}

    def note(self, problem: str) -> None:
        """Keep a problem, once."""
        if problem not in self.problems:
            self.problems.append(problem)


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


def grade_notebook(path: Path, result: Result, seconds: float = 120, megabytes: int = 4096) -> None:
    """Add one notebook's answers to ``result``; ``seconds`` is for the notebook as a whole.

    A crash or a hang costs the exercise or the statement it happened in, no other: what is left of the notebook is
    run again without it, in what is left of the time.
    """
    until = time.monotonic() + seconds
    skip: list[str] = []
    waiting: list[str] = []  # exercises that the notebook answers and that have no result yet
    while True:
        run = run_notebook(path, skip, until - time.monotonic(), megabytes)
        step = ""  # what the process was doing when it ended
        for line in run.lines:
            step = _take(line, step, path.name, result, skip, waiting)
        if run.printed > MUCH:
            result.note(f"{path.name}: its cells print {run.printed >> 20} MB or more, which nobody kept")
        if any("end" in line for line in run.lines):
            return
        skip.append(step)
        if step in waiting:
            waiting.remove(step)
            result.add(step, "timed out" if run.timed_out else "crashed", run.ending)
        else:
            result.note(": ".join(part for part in (path.name, step, run.ending) if part))
        if not step or time.monotonic() >= until:
            break
    for exercise in waiting:
        result.add(exercise, "timed out", f"the {seconds:g} seconds of the notebook were over before its turn came")


def _take(
    line: dict[str, object], step: str, notebook: str, result: Result, skip: list[str], waiting: list[str]
) -> str:
    """Take one line of a report; return the step that the process is at."""
    match line:
        case {"begin": str(begun)}:
            return begun
        case {"exercises": list(names)}:
            waiting[:] = [name for name in names if name in exercises() and name not in skip]
        case {"exercise": str(name), "status": str(status)} if name in exercises() and status in RANK:
            parts = {key: str(line.get(key, "")) for key in ("what", "got", "mistake")}
            result.add(name, status, **parts)
            skip.append(name)
            if name in waiting:
                waiting.remove(name)
            return ""
    if "problem" in line:
        result.note(f"{notebook}: {line['problem']}")
    if "slow" in line:
        skip.append(str(line["slow"]))
    return step


def grade(
    folder: Path,
    seconds: float = 120,
    megabytes: int = 4096,
    track: Callable[[Iterable[tuple[str, Path]], int], Iterable[tuple[str, Path]]] | None = None,
    keep: Callable[[list[Result]], object] | None = None,
) -> list[Result]:
    """Grade every notebook below ``folder``.

    ``track`` may wrap the work in a progress bar: (items, count) -> items. ``keep`` is called after each notebook with
    the results of all students so far, so that nothing is lost if the grading is stopped.
    """
    found = submissions(folder)
    work = [(student, path) for student, paths in found.items() for path in paths]
    results: dict[str, Result] = {}
    for student, path in track(work, len(work)) if track else work:
        if student not in results:
            results[student] = Result(student, waiting=[path.name for path in found[student]])
        grade_notebook(path, results[student], seconds, megabytes)
        results[student].waiting.remove(path.name)
        if keep:
            keep(list(results.values()))
    return list(results.values())


def result_paths(base: Path) -> tuple[Path, Path]:
    """``base.csv`` and ``base.json``.

    Raises ``WriteError`` if they cannot be written: so ask before hours of work.
    """
    base = base.with_suffix("") if base.suffix in (".csv", ".json") else base
    if base.name in ("", ".."):
        raise WriteError(f"{base} is a folder; give the base name of two files in it, say {base / 'grades'}")
    if not base.parent.is_dir():
        raise WriteError(f"cannot write {base}.csv: the folder {base.parent} does not exist; create it first")
    table, details = (base.with_name(base.name + suffix) for suffix in (".csv", ".json"))
    for path in (table, details):
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise WriteError(f"cannot write {path}: you may not write there; give another name")
        if path.exists() and not path.is_file():
            raise WriteError(f"cannot write {path}: it is not a regular file; give another name")
    return table, details


def write_results(results: list[Result], base: Path) -> tuple[Path, Path]:
    """Write ``base.csv`` (a row a student, a column an exercise) and ``base.json`` (with the diagnoses), atomically.

    A character that cannot be printed is escaped in the CSV, and in the JSON only where UTF-8 has none for it.
    """
    names = list(exercises())
    table, details = result_paths(base)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["student", "passed", *names, "problems"])
    rows = []
    for result in results:
        states = [result.status(name) for name in names]
        passed = states.count("passed")
        problems = [*result.problems, *(f"{name}: not graded yet" for name in result.waiting)]
        writer.writerow([visible(result.student), passed, *states, visible("; ".join(problems))])
        answers = {name: result.answers.get(name, {"status": "missing"}) for name in names}
        rows.append({"student": result.student, "passed": passed, "exercises": answers, "problems": problems})
    as_json = json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
    for path, content in ((table, text.getvalue()), (details, as_json)):
        with atomic_write(path) as file:
            file.write(content.encode("utf-8", "backslashreplace"))  # \\udcff is JSON's own escape
    return table, details
