"""The plans of a term, week by week: ``book/plan.toml`` says which labs, the rest is computed.

The minutes are those of the labs, as their first cells tell them; what students hand in is the list of the notebooks
with the number of their exercises; which labs need PyTorch is read from their cells.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import MiniquantError
from .course import Lab, all_labs, read_course

SOURCE = "book/plan.toml"


@dataclass(frozen=True)
class Week:
    """A week: its labs, what the instructor prepares, what is handed in beside the notebooks, what is reached."""

    labs: tuple[Lab, ...]
    prepare: str
    hand_in: str
    milestone: str

    @property
    def minutes(self) -> int:
        """The time of its labs."""
        return sum(lab.time.total for lab in self.labs)

    @property
    def exercises(self) -> int:
        """How many exercises its labs have."""
        return sum(lab.time.exercises for lab in self.labs)


@dataclass(frozen=True)
class Plan:
    """A plan: its weeks in order."""

    weeks: tuple[Week, ...]

    @property
    def minutes(self) -> int:
        """The time of all its labs."""
        return sum(week.minutes for week in self.weeks)


def read_plans(root: Path) -> dict[int, Plan]:
    """The plans of a checkout by their numbers of weeks.

    Raises ``MiniquantError`` for a lab that the course does not have, one that is in a plan twice, and one that builds
    on a lab which the plan has in a later week only.
    """
    known = {lab.subject: lab for lab in all_labs(read_course(root))}
    plans = {}
    for table in tomllib.loads((root / SOURCE).read_text("utf-8"))["plan"]:
        listed = [subject for week in table["week"] for subject in week["labs"]]
        for subject in listed:
            if subject not in known:
                raise MiniquantError(f"{SOURCE} has the lab {subject!r}, which the course does not have; take it out")
            if listed.count(subject) > 1:
                raise MiniquantError(f"{SOURCE} has the lab {subject!r} twice in one plan")
        _check_order([known[subject] for subject in listed])
        weeks = tuple(
            Week(
                tuple(known[subject] for subject in week["labs"]),
                week.get("prepare", ""),
                week.get("hand_in", ""),
                week["milestone"],
            )
            for week in table["week"]
        )
        plans[len(weeks)] = Plan(weeks)
    return plans


def _check_order(labs: list[Lab]) -> None:
    place = {lab.number: at for at, lab in enumerate(labs)}
    for at, lab in enumerate(labs):
        if late := [number for number in lab.after if place.get(number, -1) > at]:
            raise MiniquantError(f"{SOURCE}: lab {lab.number} builds on lab {late[0]}, which comes later in the plan")


def hours(minutes: int) -> str:
    """Minutes as hours and minutes.

    >>> hours(97), hours(60), hours(45)
    ('1 h 37 min', '1 h', '45 min')
    """
    whole, rest = divmod(minutes, 60)
    return " ".join(part for part in (f"{whole} h" * bool(whole), f"{rest} min" * bool(rest or not whole)) if part)


def rows(plan: Plan, folder: str) -> list[str]:
    """A plan as a table in Markdown; ``folder`` leads from the page to the students' notebooks."""
    lines = ["| week | labs | time | prepare | students hand in | milestone |", "| --- | --- | --- | --- | --- | --- |"]
    for number, week in enumerate(plan.weeks, 1):
        labs = "; ".join(
            f"[{lab.number} {lab.title[:1].upper()}{lab.title[1:]}]({folder}/{lab.file})" for lab in week.labs
        )
        cells = [str(number), labs, hours(week.minutes), _prepare(week), _hand_in(week), week.milestone]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _prepare(week: Week) -> str:
    torch = [lab.number for lab in week.labs if lab.torch]
    library = f"PyTorch for {_numbers(torch)}" if torch else "numpy is enough"
    return f"{week.prepare} {library[0].upper() + library[1:]}.".strip()


def _hand_in(week: Week) -> str:
    notebooks = f"{_numbers([lab.number for lab in week.labs])}, {week.exercises} exercises"
    return f"{notebooks}; {week.hand_in}" if week.hand_in else notebooks


def _numbers(numbers: list[str]) -> str:
    *most, last = numbers
    return f"labs {', '.join(most)} and {last}" if most else f"lab {last}"
