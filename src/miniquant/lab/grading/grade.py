"""Grade a folder of submitted notebooks: a process for each, a row for each student, a column for each exercise."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ...core.errors import MiniquantError
from ..catalogue import exercises

RANK = ["missing", "not attempted", "crashed", "timed out", "failed", "passed"]  # of two answers the better counts


@dataclass
class Result:
    """One student's results: exercise -> {"status", "what", "mistake"}, and what went wrong with whole notebooks."""

    student: str
    answers: dict[str, dict[str, str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def status(self, exercise: str) -> str:
        """One of ``RANK``."""
        return self.answers.get(exercise, {}).get("status", "missing")

    def add(self, exercise: str, status: str, what: str = "", mistake: str = "") -> None:
        """Keep an answer, unless a better one is there."""
        if RANK.index(status) >= RANK.index(self.status(exercise)):
            self.answers[exercise] = {"status": status, "what": what, "mistake": mistake}


def submissions(folder: Path) -> dict[str, list[Path]]:
    """Student -> notebooks. In ``FOLDER/student/…`` the subfolder is the student, else the file's name is.

    Raises ``MiniquantError`` if the folder holds no notebook.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*.ipynb")):
        inside = path.relative_to(folder)
        if any(part.startswith(".") for part in inside.parts):
            continue  # .ipynb_checkpoints
        found.setdefault(inside.parts[0] if len(inside.parts) > 1 else path.stem, []).append(path)
    if not found:
        raise MiniquantError(f"no notebook (*.ipynb) in {folder}; expected {folder}/STUDENT/06-writer.ipynb")
    return found


def grade_notebook(path: Path, result: Result, seconds: float = 120, megabytes: int = 4096) -> None:
    """Add one notebook's answers to ``result``. A crash or a hang costs the exercise it happened in, no other."""
    skip: list[str] = []
    while True:
        lines, ending = _run(path, skip, seconds, megabytes)
        current = None
        for line in lines:
            if "begin" in line:
                current = line["begin"]
            elif "exercise" in line:
                result.add(line["exercise"], line["status"], line["what"], line["mistake"])
                skip.append(line["exercise"])
                current = None
        if any("end" in line for line in lines):
            return
        if current is None:
            result.problems.append(f"{path.name}: {ending}")
            return
        result.add(current, "timed out" if ending == "timed out" else "crashed", ending)
        skip.append(current)


def _run(path: Path, skip: list[str], seconds: float, megabytes: int) -> tuple[list[dict], str]:
    """One process: the JSON lines that it reported, and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        work = Path(folder) / "work"
        work.mkdir()
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "SYSTEMROOT", "LANG", "VIRTUAL_ENV")}
        quiet = {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "MINIQUANT_PROGRESS": os.devnull}
        home = {"HOME": str(work), "TMPDIR": str(work), "MPLCONFIGDIR": str(work)}
        sandbox = [sys.executable, "-m", "miniquant.lab.grading.sandbox"]
        command = [*sandbox, str(path.resolve()), str(report), str(megabytes), *skip]
        report.touch()
        try:
            ended = subprocess.run(
                command,
                cwd=work,
                env={**kept, **quiet, **home},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
            )
            last = ended.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
            ending = f"ended with code {ended.returncode} {last[0][:200]}".strip()
        except subprocess.TimeoutExpired:
            ending = "timed out"
        lines = []
        for line in report.read_text("utf-8", "replace").splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                break  # the process died in the middle of a line
        return lines, ending


def grade(
    folder: Path,
    seconds: float = 120,
    megabytes: int = 4096,
    track: Callable[[Iterable[tuple[str, Path]], int], Iterable[tuple[str, Path]]] | None = None,
) -> list[Result]:
    """Grade every notebook below ``folder``. ``track`` may wrap the work in a progress bar: (items, count) -> items."""
    found = submissions(folder)
    work = [(student, path) for student, paths in found.items() for path in paths]
    results = {student: Result(student) for student in found}
    for student, path in track(work, len(work)) if track else work:
        grade_notebook(path, results[student], seconds, megabytes)
    return list(results.values())


def write_results(results: list[Result], base: Path) -> tuple[Path, Path]:
    """Write ``base.csv`` (a row a student, a column an exercise) and ``base.json`` (with the diagnoses)."""
    names = list(exercises())
    table, details = base.with_suffix(".csv"), base.with_suffix(".json")
    with open(table, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["student", "passed", *names, "problems"])
        for result in results:
            states = [result.status(name) for name in names]
            writer.writerow([result.student, states.count("passed"), *states, "; ".join(result.problems)])
    rows = [
        {
            "student": result.student,
            "passed": sum(result.status(name) == "passed" for name in names),
            "exercises": {name: result.answers.get(name, {"status": "missing"}) for name in names},
            "problems": result.problems,
        }
        for result in results
    ]
    details.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return table, details
