"""What a grading found: a result for each student, and the files that hold them."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ...core.errors import MiniquantError, WriteError
from ...core.files import atomic_write
from ...core.text import visible
from ..catalogue import exercises

MOST = 100  # problems that are kept of one student
RANK = ["missing", "not attempted", "crashed", "timed out", "failed", "passed"]  # of two answers the better counts


@dataclass
class Result:
    """One student's results: exercise -> {"status", "what", "got", "mistake", "flag"}, and problems of notebooks.

    ``flag`` says what a teacher should look at though the answer passed.

    ``seed`` is that of the random cases. ``notebooks`` has what was graded: name -> SHA-256 of the file.
    """

    student: str
    answers: dict[str, dict[str, str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    seed: int | None = None
    notebooks: dict[str, str] = field(default_factory=dict)

    def status(self, exercise: str) -> str:
        """One of ``RANK``."""
        return self.answers.get(exercise, {}).get("status", "missing")

    def add(self, exercise: str, status: str, what: str = "", got: str = "", mistake: str = "", flag: str = "") -> None:
        """Keep an answer, unless a better one is there; of two that passed, the one without a flag is better."""
        old = self.answers.get(exercise, {})
        if (RANK.index(status), not flag) >= (RANK.index(self.status(exercise)), not old.get("flag")):
            found = {"status": status, "what": what, "got": got, "mistake": mistake, "flag": flag}
            self.answers[exercise] = {key: value for key, value in found.items() if value or key != "flag"}

    def row(self) -> dict[str, Any]:
        """The result as an object of JSON."""
        return asdict(self)

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Result:
        """The result of such an object. Raises ``MiniquantError`` if it is none."""
        try:
            return cls(**{each.name: row[each.name] for each in fields(cls)})
        except (KeyError, TypeError) as error:
            raise MiniquantError(f"a row of results lacks {error}") from None

    def note(self, problem: str) -> None:
        """Keep a problem, once."""
        if problem not in self.problems and len(self.problems) < MOST:
            self.problems.append(problem)


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
    writer.writerow(["student", "passed", *names, "flags", "problems"])
    rows = []
    for result in results:
        states = [result.status(name) for name in names]
        passed = states.count("passed")
        flags = "; ".join(f"{name}: {answer['flag']}" for name, answer in result.answers.items() if answer.get("flag"))
        writer.writerow([visible(result.student), passed, *states, flags, visible("; ".join(result.problems))])
        answers = {name: result.answers.get(name, {"status": "missing"}) for name in names}
        about = {"student": result.student, "passed": passed, "seed": result.seed}
        rows.append({**about, "exercises": answers, "problems": result.problems})
    as_json = json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
    for path, content in ((table, text.getvalue()), (details, as_json)):
        with atomic_write(path) as file:
            file.write(content.encode("utf-8", "backslashreplace"))  # \\udcff is JSON's own escape
    return table, details
