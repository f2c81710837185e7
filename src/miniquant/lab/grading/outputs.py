"""Results in the forms that other systems read: Gradescope, Classroom 50 and Canvas."""

from __future__ import annotations

import csv
import datetime
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ...core.errors import MiniquantError
from ...core.files import atomic_write
from ...core.text import visible
from ..catalogue import exercises
from .results import Result

IDENTITY = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
READ_ONLY = "Points Possible"  # how Canvas begins its second row, with blanks before it


def counted(results: Iterable[Result], labs: Iterable[str] = ()) -> list[str]:
    """The exercises that give points, one each: those of the labs, or of every lab of which somebody answers one."""
    known = exercises()
    chosen = set(labs) or {known.lab_of(name) for result in results for name in result.answers}
    return [name for name in known if known.lab_of(name) in chosen]


def gradescope(result: Result, names: Iterable[str]) -> dict[str, Any]:
    """One student's ``results.json``.

    The form: https://gradescope-autograders.readthedocs.io/en/latest/specs/ (Output format).
    """
    tests = []
    for name in names:
        passed = result.status(name) == "passed"
        tests.append(
            {
                "name": f"lab {exercises().lab_of(name)}: {name}",
                "score": int(passed),
                "max_score": 1,
                "status": "passed" if passed else "failed",
                "output": _said(result, name),
                "output_format": "text",
            }
        )
    about = {"seed": result.seed, "flags": flags_of(result), "problems": result.problems}  # for the teacher
    return {
        "score": sum(test["score"] for test in tests),
        "output": "\n".join(map(visible, result.problems)),
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": about,
    }


def classroom50(result: Result, names: Iterable[str], environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """One student's ``result.json``; what only the runner knows is taken from its environment variables.

    The form: https://github.com/foundation50/classroom50/wiki/Advanced-Autograding, and result-v1.schema.json there.
    """
    given = os.environ if environment is None else environment
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    tests = []
    for name in names:
        passed = result.status(name) == "passed"
        row = {"test-name": name, "passed": passed, "score": int(passed), "max-score": 1, "output": _said(result, name)}
        tests.append(row)
    commit = given.get("COMMIT_URL") or "unknown"
    return {
        "schema": "classroom50/result/v1",
        "classroom": given.get("CLASSROOM") or "miniquant",
        "assignment": given.get("ASSIGNMENT") or "labs",
        "assignment_type": "group" if "group" in (given.get("ASSIGNMENT_TYPE"), given.get("MODE")) else "individual",
        "owner": given.get("OWNER") or given.get("USERNAME") or visible(result.student) or "unknown",
        "submission": given.get("SUBMISSION_TAG") or "submit/unknown",
        "commit": commit,
        "release": given.get("RELEASE_URL") or commit,
        "review": given.get("REVIEW_URL") or commit,
        "datetime": given.get("SUBMISSION_DATETIME") or now,
        "graded_at": now,
        "score": sum(result.status(name) == "passed" for name in names),
        "max-score": len(tests),
        "tests": tests,
    }


def canvas(results: Iterable[Result], names: list[str], gradebook: Path | None = None) -> str:
    """A table that Canvas's gradebook imports: a column of points for each lab.

    ``gradebook`` is what Canvas exported for the course: the columns of identity are taken from it, for students whose
    folder has the name of their SIS Login ID, SIS User ID or ID. Without it, the folder's name is the SIS Login ID.

    The form: https://teaching.resources.osu.edu/toolsets/carmencanvas/guides/calculating-final-grades/
    import-csv-file-carmen-grades, which tells what the import asks for. Raises ``MiniquantError`` for another export.
    """
    known = exercises()
    labs = sorted({known.lab_of(name) for name in names})
    of_lab = {lab: [name for name in names if known.lab_of(name) == lab] for lab in labs}
    people = _people(gradebook) if gradebook else {}
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*IDENTITY, *(f"miniquant lab {lab}" for lab in labs)])
    writer.writerow([f"    {READ_ONLY}", *[""] * (len(IDENTITY) - 1), *(len(of_lab[lab]) for lab in labs)])
    for result in results:
        name = visible(result.student)
        if gradebook and result.student not in people:
            continue  # Canvas would refuse the whole file
        identity = people.get(result.student, [_safe(name), "", "", _safe(name), ""])
        points = [sum(result.status(each) == "passed" for each in of_lab[lab]) for lab in labs]
        writer.writerow([*identity, *points])
    return text.getvalue()


def _safe(text: str) -> str:
    """A text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _people(gradebook: Path) -> dict[str, list[str]]:
    with gradebook.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    if not rows or not {"Student", "ID"} <= rows[0].keys():
        raise MiniquantError(f"{gradebook} is no gradebook of Canvas: it has no columns Student and ID")
    found: dict[str, list[str]] = {}
    for row in rows:
        for column in ("ID", "SIS User ID", "SIS Login ID"):  # the last one counts most
            if row.get(column):
                found[row[column]] = [row.get(each) or "" for each in IDENTITY]
    return found


def flags_of(result: Result) -> dict[str, str]:
    """Exercise -> what a teacher should look at."""
    return {name: answer["flag"] for name, answer in result.answers.items() if answer.get("flag")}


def _said(result: Result, name: str) -> str:
    answer = result.answers.get(name, {})
    parts = [result.status(name), answer.get("what", ""), answer.get("mistake", "")]
    return visible(": ".join(part for part in parts if part))


FORMS: dict[str, tuple[str, Callable[..., dict[str, Any]]]] = {
    "gradescope": ("results.json", gradescope),
    "classroom50": ("result.json", classroom50),
}


def write_form(form: str, results: list[Result], base: Path, names: list[str], gradebook: Path | None = None) -> Path:
    """Write ``base-canvas.csv``, or ``base-gradescope/STUDENT/results.json`` and the like; return the path."""
    if form == "canvas":
        path = base.with_name(f"{base.name}-canvas.csv")
        with atomic_write(path) as file:
            file.write(canvas(results, names, gradebook).encode("utf-8", "backslashreplace"))
        return path
    name, make = FORMS[form]
    folder = base.with_name(f"{base.name}-{form}")
    for result in results:
        (folder / result.student).mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / result.student / name) as file:
            file.write(json.dumps(make(result, names), indent=1).encode() + b"\n")
    return folder
