"""The example of a class on the site: ``python tools/example_class.py`` makes it, with ``--check`` it only compares.

Five students hand in lab 09. Their notebooks come from the generator of ``benchmarks/bench_grading.py``. The class is
graded by ``miniquant grade`` with a fixed seed, in all three forms. ``book/example-class.json`` keeps what was printed
and written; the page shows it. The time of the grading, which differs each time, is left out.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from bench_grading import notebook_of  # noqa: E402 (its folder is no package)

from miniquant.lab import exercises  # noqa: E402

STORED = ROOT / "book" / "example-class.json"
LAB = "09-writer"
SEED = 9
STUDENTS = {  # name -> (kind of notebook, the number from which the generator takes exercise and mistake)
    "ann": ("right", 0),
    "bob": ("wrong", 2),
    "cleo": ("crashing", 1),
    "dan": ("hostile", 3),
    "eve": ("untouched", 0),
}
FORMS = ("gradescope", "classroom50", "canvas")
COMMAND = ("grade", "submitted", "--seed", str(SEED), *(part for form in FORMS for part in ("--form", form)))
RUNNER = {"CLASSROOM": "miniquant", "ASSIGNMENT": LAB, "SUBMISSION_DATETIME": "2026-01-01T00:00:00Z"}
GRADESCOPE, CLASSROOM = "grades-gradescope/bob/results.json", "grades-classroom50/bob/result.json"


def make(folder: Path) -> None:
    """Write the notebooks of the class into ``folder/submitted``."""
    for name, (kind, number) in STUDENTS.items():
        untouched = ROOT / "notebooks" / f"{LAB}.ipynb"
        notebook = json.loads(untouched.read_text("utf-8")) if kind == "untouched" else notebook_of(kind, LAB, number)
        home = folder / "submitted" / name
        home.mkdir(parents=True)
        (home / f"{LAB}.ipynb").write_text(json.dumps(notebook), "utf-8")


def graded() -> dict[str, Any]:
    """What the page shows: the class, the command and its lines, and the text of each file that it wrote.

    Raises ``CalledProcessError`` if the command fails; its own lines say why.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make(folder)
        runner = {name: value for name, value in os.environ.items() if name not in ("USERNAME", "OWNER", "MODE")}
        done = subprocess.run(
            [sys.executable, "-m", "miniquant.cli", *COMMAND],
            cwd=folder,
            env={**runner, **RUNNER},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("grades*") if path.is_file())
        files += sorted(path.relative_to(folder).as_posix() for path in folder.glob("grades-*/*/*.json"))
        result = json.loads((folder / CLASSROOM).read_text("utf-8"))
        del result["graded_at"]
        return {
            "class": {name: kind for name, (kind, _) in STUDENTS.items()},
            "command": " ".join(("miniquant", *COMMAND)),
            "printed": done.stdout,
            "files": files,
            "grades.csv": columns(folder / "grades.csv"),
            "grades-canvas.csv": (folder / "grades-canvas.csv").read_text("utf-8"),
            GRADESCOPE: json.loads((folder / GRADESCOPE).read_text("utf-8")),
            CLASSROOM: result,
        }


def columns(path: Path) -> list[list[str]]:
    """The table of the grades, without the exercises of other labs, which are all "missing"."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    shown = [at for at, name in enumerate(header) if name not in exercises() or exercises().lab_of(name) == LAB[:2]]
    return [[row[at] for at in shown] for row in (header, *rows)]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="compare only; write nothing")
    options = parser.parse_args()
    text = json.dumps(graded(), indent=1) + "\n"
    if options.check:
        same = STORED.read_text("utf-8") == text
        print("the example is what the grader gives" if same else f"{STORED.name} is old; run tools/example_class.py")
        return not same
    STORED.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
