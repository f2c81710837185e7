"""``miniquant lab new SUBJECT NAME``: a lesson with one exercise that runs, and its four cells in the solved notebook.

The exercise is a toy that passes every claim of ``checks``; its author replaces it piece by piece.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from ...core.errors import MiniquantError
from ..catalogue import exercises
from .cells import PARTS
from .course import SOURCE, with_new_lab

LESSON = '''"""One line on what the exercise {name} is about."""

from ...lab import Exercise, Mistake, edit, omit


def {name}(values):
    """Double every value.

    values: list of integers   ->   list of integers, of the same length
    """
    doubled = []
    for value in values:
        doubled.append(2 * value)
    return doubled


def oracle(values):
    """Adds each value to itself."""
    return [value + value for value in values]


def cases(random):
    """Small lists first, then a random one."""
    return [([1, 2, 3],), ([0],), ([-5, 7],), ([],), (random.integers(-9, 9, 6).tolist(),)]


EXERCISE = Exercise(
    goal="Double every value of a list.",
    reference={name}, oracle=oracle, cases=cases, minutes=3, difficulty="warm-up",
    hints=(
        "Begin with an empty list.",
        "In a loop, append each result to the list.",
    ),
    why="say in one line what this is good for.",
    mistakes=(
        Mistake("squared", edit("2 * value", "value**2"),
            cause="Each value was multiplied by itself.",
            cure="Multiply by 2.", see="`9` where `6` is expected"),
        Mistake("tripled", edit("2 * value", "3 * value"),
            cause="Each value was multiplied by 3.",
            cure="Multiply by 2.", see="`3` where `2` is expected"),
        Mistake("last value missing", edit("in values:", "in values[:-1]:"),
            cause="The slice `[:-1]` leaves out the last value.",
            cure="Go over all values.", see="a list that is one too short"),
        Mistake("nothing appended", omit("doubled.append"),
            cause="Nothing is appended to the list.",
            cure="Append each result.", see="an empty list"),
        Mistake("reversed", edit("return doubled", "return doubled[::-1]"),
            cause="The results were returned in reverse order.",
            cure="Return the list as it is.", see="the right values from back to front"),
    ),
)
'''
SETUP = "from miniquant.lab import check, exercise"


def new_exercise(subject: str, name: str, root: Path) -> list[Path]:
    """Write the lesson, its line in the lab's ``EXERCISES`` and its cells; a subject that is new becomes the last lab.

    subject, name: Python names; root: the folder of the checkout   ->   the files that were written or changed

    Raises ``MiniquantError`` for a name that is taken or is no Python name, and for a folder that is no checkout.
    """
    for word in (subject, name):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", word):
            raise MiniquantError(f"{word!r} is no name for a module; use small letters, digits and _, as in pack_int4")
    if name in exercises():
        raise MiniquantError(
            f"there is an exercise {name!r} already, in lab {exercises().lab_of(name)}; choose a new name"
        )
    lessons = root / "src/miniquant/lessons"
    if not lessons.is_dir() or not (root / "solutions").is_dir():
        raise MiniquantError(
            f"{root} holds no src/miniquant/lessons and solutions; run this in a checkout of miniquant"
        )
    changed = []
    if not (lessons / subject).exists():
        changed += _new_lab(subject, lessons, root)
    notebook = _notebook_of(subject, root / "solutions")
    lab = lessons / subject / "__init__.py"
    text = lab.read_text("utf-8")
    lab.write_text(_appended(text, "EXERCISES", name), "utf-8")
    lesson = lessons / subject / f"{name}.py"
    lesson.write_text(LESSON.format(name=name), "utf-8")
    _add_cells(notebook, name)
    return [*changed, lesson, lab, notebook]


def _appended(text: str, names: str, name: str) -> str:
    """The text of a module in which the tuple called ``names`` has one more line."""
    return re.sub(rf'({names} = \(\n(?:    "\w+",\n)*)', rf'\1    "{name}",\n', text)


def _new_lab(subject: str, lessons: Path, root: Path) -> list[Path]:
    course = lessons / "__init__.py"
    text = course.read_text("utf-8")
    number = len(re.findall(r'^    "\w+",$', text, re.M))
    course.write_text(_appended(text, "COURSE", subject), "utf-8")
    (lessons / subject).mkdir()
    title = subject.replace("_", " ")
    (lessons / subject / "__init__.py").write_text(f'"""The lab {title}."""\n\nEXERCISES = (\n)\n', "utf-8")
    table = root / SOURCE
    table.write_text(with_new_lab(table.read_text("utf-8"), subject, title), "utf-8")
    notebook = root / "solutions" / f"{number:02}-{subject.replace('_', '-')}.ipynb"
    cells = [
        _cell(f"lab{number:02}-000", "markdown", f"# Lab {number:02}: {title}", {}),
        _cell(f"lab{number:02}-001", "code", SETUP, {}),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    _write(notebook, {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
    return [course, table, notebook]


def _notebook_of(subject: str, solutions: Path) -> Path:
    names = [p for p in sorted(solutions.glob("[0-9][0-9]-*.ipynb")) if p.stem[3:].replace("-", "_") == subject]
    if not names:
        raise MiniquantError(f"no notebook in {solutions} is called NN-{subject}.ipynb; the lab has no source")
    return names[0]


def _add_cells(path: Path, name: str) -> None:
    """The four cells, empty, at the end of the notebook; ``make notebooks`` fills them in."""
    notebook = json.loads(path.read_text("utf-8"))
    for part in PARTS:
        kind = "code" if part in ("stub", "check") else "markdown"
        metadata: dict[str, object] = {"miniquant": {"exercise": name, "part": part}}
        notebook["cells"].append(_cell(f"{name.replace('_', '-')}-{part}", kind, "", metadata))
    _write(path, notebook)


def _cell(cell_id: str, kind: str, source: str, metadata: dict[str, object]) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": kind, "id": cell_id, "metadata": metadata, "source": source}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def _write(path: Path, notebook: dict[str, object]) -> None:
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
