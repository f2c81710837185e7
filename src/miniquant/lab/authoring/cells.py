"""The four cells of an exercise in a solved notebook, made from its lesson: goal, stub with solution, check, help."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...core.language import translated
from ..spec import Exercise, text_of

PARTS = ("goal", "stub", "check", "help")
# Jupyter keeps these styles; the site has its own style sheet for the class. Without either the folds are stacked.
ROW = '<div class="mq-help" style="display:flex;flex-wrap:wrap;align-items:flex-start;gap:0 1.5em">'
NUMBERS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"]
BEGIN, END = "    ### BEGIN SOLUTION\n", "\n    ### END SOLUTION"


def goal_cell(spec: Exercise, notebook: str) -> str:
    """The heading, the goal in one sentence, minutes and difficulty."""
    heading = translated(f"### Exercise: `{spec.name}`")
    goal = f"{translated('**Goal.**')} {translated(spec.goal)}"
    return f"{heading}\n\n{goal}\n\n*{translated(f'{spec.minutes} minutes')} · {translated(spec.difficulty)}*"


def stub_cell(spec: Exercise, notebook: str) -> str:
    """The function with its solution between the marks, as the lesson has it."""
    text = text_of(spec.reference)
    return f'@exercise("{spec.name}")\n{text.head}\n{BEGIN}{text.body.strip(chr(10))}{END}'


def check_cell(spec: Exercise, notebook: str) -> str:
    """The call of ``check``."""
    return f"check({spec.name})"


def help_cell(spec: Exercise, notebook: str) -> str:
    """One row of folds: two hints, what a student may see, and the way to the solution."""
    seen = "\n".join(f"* {translated(m.see)}: *{translated(m.name)}*" for m in spec.mistakes)
    anchor = f"exercise-{spec.name.replace('_', '-')}"
    link = translated(f"The worked answer is in the [solved lab](../solutions/{notebook}#{anchor}).")
    folds = [(translated(f"Hint {number}"), translated(text)) for number, text in enumerate(spec.hints, 1)]
    folds += [
        (translated(things(len(spec.mistakes))), f"{translated('I see …')}\n\n{seen}"),
        (translated("Solution"), link),
    ]
    return "\n\n".join([ROW, *(_folded(title, text) for title, text in folds), "</div>"])


def things(count: int) -> str:
    """The title of the list of what a student may see.

    >>> things(9), things(1), things(13)
    ('Nine things you may see', 'One thing you may see', '13 things you may see')
    """
    number = NUMBERS[count] if count < len(NUMBERS) else str(count)
    return f"{number} thing{'s' * (count != 1)} you may see"


_CELLS: dict[str, Callable[[Exercise, str], str]] = {
    "goal": goal_cell,
    "stub": stub_cell,
    "check": check_cell,
    "help": help_cell,
}


def source_of(part: str, spec: Exercise, notebook: str) -> str:
    """The text of one of the ``PARTS`` for a notebook of this file name."""
    return _CELLS[part](spec, notebook)


def exercise_of(source: str) -> tuple[str, str] | None:
    """The exercise and the part that a code cell belongs to: a stub or a check; ``None`` for another cell.

    >>> exercise_of("check(pack_int4)"), exercise_of("print(1)")
    (('pack_int4', 'check'), None)
    """
    if stub := re.search(r'^@exercise\("(\w+)"\)', source, re.M):
        return stub[1], "stub"
    if checked := re.fullmatch(r"check\((\w+)\)", source.strip()):
        return checked[1], "check"
    return None


def grading_metadata(name: str, part: str) -> dict[str, Any]:
    """Metadata of nbgrader, so that a class can use the same notebooks: a stub is an answer, a check one point."""
    grade: dict[str, Any] = {
        "grade": part == "check",
        "grade_id": f"check-{name}" if part == "check" else name,
        "locked": part == "check",
        "schema_version": 3,
        "solution": part == "stub",
        "task": False,
    }
    return {**grade, "points": 1} if part == "check" else grade


def _folded(title: str, text: str) -> str:
    # the blank lines let Markdown read the text; it reads none inside a summary
    return f'<details style="max-width:100%">\n<summary>{title}</summary>\n\n{text}\n\n</details>'
