"""The answer key: where each solution is, what matters in it, and the mistakes that its check names."""

from __future__ import annotations

from collections.abc import Iterable

from ..spec import Exercise
from .course import Lab
from .questions import said

FIRST = 3  # mistakes of an exercise that are listed, in the order of its lesson


def key_of(spec: Exercise, lab: Lab, root: str, first: int = FIRST) -> list[str]:
    """The lines of one exercise in Markdown. ``root`` leads to the checkout; ``first`` mistakes are listed, 0 for all.

    A mistake is written as a check prints it: its name and its cause.
    """
    anchor = f"exercise-{spec.name.replace('_', '-')}"
    source = f"src/miniquant/lessons/{spec.subject}/{spec.name}.py"
    shown = spec.mistakes[:first] if first else spec.mistakes
    lines = [
        f"**[`{spec.name}`]({root}/solutions/{lab.file}#{anchor})**, {spec.minutes} min, {spec.difficulty}. "
        f"{spec.goal}",
        "",
        f"*Source:* `{source}`. *Why it matters:* {spec.why}",
        "",
    ]
    lines += [f"* {said(mistake)} *Cure:* {mistake.cure}" for mistake in shown]
    if more := len(spec.mistakes) - len(shown):
        lines.append(f"* and {more} more")
    return [*lines, ""]


def key_of_lab(lab: Lab, specs: Iterable[Exercise], root: str, first: int = FIRST) -> list[str]:
    """The lines of all exercises of a lab."""
    return [line for spec in specs for line in key_of(spec, lab, root, first)]
