"""The board of open exercises: a student's best figure beside the reference's and its rivals'.

An open exercise has no single answer. Its check says what is allowed; its ``Contest`` measures how good an answer is.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..core.errors import MiniquantError
from ..core.language import translated
from . import record, session
from .catalogue import exercises, find
from .figures import figure
from .spec import Contest, Exercise, Function

YOURS, BEST, REFERENCE = "yours", "your best", "the reference"


@dataclass(frozen=True)
class Row:
    """One answer and its figure; ``own`` is the student's."""

    name: str
    value: float
    own: bool = False


@dataclass(frozen=True)
class Board:
    """The answers to one open exercise, the best one first."""

    exercise: str
    lab: str
    what: str
    unit: str
    digits: int
    lower_is_better: bool
    rows: tuple[Row, ...]

    def _title(self) -> str:
        return f"{self.exercise}, {translated(f'lab {self.lab}')}: {translated(self.what)}; " + translated(
            "lower is better" if self.lower_is_better else "higher is better"
        )

    def _shown(self, row: Row) -> str:
        return f"{figure(row.value, self.digits)} {self.unit}".strip()

    def _note(self) -> str:
        return (
            ""
            if any(row.own for row in self.rows)
            else translated(f"no figure of yours yet: check({self.exercise}) measures it")
        )

    def __repr__(self) -> str:
        names = max(len(translated(row.name)) for row in self.rows)
        values = max(len(self._shown(row)) for row in self.rows)
        lines = [
            f"  {'→' if row.own else ' '} {translated(row.name):{names}}  {self._shown(row):>{values}}"
            for row in self.rows
        ]
        note = self._note()
        return "\n".join([self._title(), *lines, *([f"  {note}"] if note else [])])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th scope='row' style='text-align:left'>{'→ ' * row.own}{html.escape(translated(row.name))}</th>"
            f"<td style='text-align:right'>{html.escape(self._shown(row))}</td></tr>"
            for row in self.rows
        )
        note = f"<div>{html.escape(self._note())}</div>" if self._note() else ""
        return f"<table style='color:inherit'><caption>{html.escape(self._title())}</caption>{rows}</table>{note}"


def board(name: str | Function) -> Board:
    """The board of one open exercise: the student's figures, the reference's and its rivals', measured now.

    name: an exercise, or its name

    Raises ``MiniquantError`` for a name that no exercise has, and for an exercise that is not open.
    """
    spec = getattr(name, "exercise", None) or find(name if isinstance(name, str) else getattr(name, "__name__", ""))
    contest = spec.contest
    if contest is None:
        known = ", ".join(open_exercises())
        raise MiniquantError(f"{spec.name} has one right answer, so it has no board; exercises with a board: {known}")
    rows = [Row(name, value) for name, value in _others(spec.name)]
    entry = record.read().get(spec.name)
    now, best = session.state(spec.name).figure, entry.get("best") if entry else None
    if now is not None and math.isfinite(now):
        rows.append(Row(YOURS, now, True))
    if best is not None and (now is None or math.isnan(now) or contest.better(best, now)):
        rows.append(Row(BEST, best, True))
    rows.sort(key=lambda row: row.value if contest.lower_is_better else -row.value)
    return Board(spec.name, spec.lab, contest.what, contest.unit, contest.digits, contest.lower_is_better, tuple(rows))


def open_exercises() -> Iterator[str]:
    """The names of the exercises that have a board, in the order of the course."""
    return (name for name, spec in exercises().items() if spec.contest)


@lru_cache(maxsize=16)
def _others(name: str) -> tuple[tuple[str, float], ...]:
    """The figures of the reference and of its rivals."""
    spec = find(name)
    assert spec.contest is not None
    return ((REFERENCE, measured(spec.contest, spec.reference)), *spec.contest.rivals().items())


def measured(contest: Contest, function: Function) -> float:
    """The figure of a function that passed its check. A function that raises is measured as nan."""
    try:
        return float(contest.measure(function))
    except Exception:  # right on the cases of the check, and not on those of the contest
        return math.nan


def sentence(spec: Exercise, value: float | None) -> str:
    """The figure for a report, and how to see the others'; nothing for an exercise that is not open."""
    contest = spec.contest
    if contest is None or value is None:
        return ""
    if math.isnan(value):
        return f"none: your function fails on the data of the contest ({contest.what})"
    shown = f"{contest.what}: {figure(value, contest.digits)} {contest.unit}".strip() + "; " if contest.steady else ""
    return f"{shown}`board({spec.name})` shows it beside the others"
