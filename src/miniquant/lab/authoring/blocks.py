"""The Markdown around an exercise: its goal above the stub, its hints below the check. Made from the catalogue."""

from __future__ import annotations

from ..engine import Exercise
from ..report import marked


def goal_block(spec: Exercise, notebook: str) -> str:
    """The heading, the goal in one sentence, minutes and difficulty."""
    return f"### Exercise: `{spec.name}`\n\n**Goal.** {spec.goal}\n\n*{spec.minutes} minutes · {spec.difficulty}*"


def help_block(spec: Exercise, notebook: str) -> str:
    """Two hints, one entry for every mistake of the catalogue, and the way to the solution; all folded."""
    entries = [_folded(f"Help: I see {m.see}", f"**{m.name}.** {m.cause} {m.cure}") for m in spec.mistakes]
    hints = [_folded(f"Hint {number}", text) for number, text in enumerate(spec.hints, 1)]
    anchor = f"exercise-{spec.name.replace('_', '-')}"
    link = f"The worked answer is in the [solved lab](../solutions/{notebook}#{anchor})."
    return "\n\n".join([*hints, *entries, _folded("Solution", link)])


def _folded(title: str, text: str) -> str:
    # Markdown is not read inside a summary
    return f"<details>\n<summary>{marked(title)}</summary>\n\n{text}\n\n</details>"
