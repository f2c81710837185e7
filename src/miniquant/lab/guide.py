"""Where a student stands: ``hint`` walks an exercise's ladder, one step a call; ``progress`` shows what is done."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass

from . import record
from .catalogue import exercises, find
from .checking import Answer
from .report import marked
from .spec import Exercise

_steps: dict[str, int] = {}


@dataclass(frozen=True)
class Hint:
    """One rung of the ladder."""

    title: str
    text: str

    def __repr__(self) -> str:
        return f"{self.title}\n  " + self.text.replace("\n", "\n  ")

    def _repr_html_(self) -> str:
        body = marked(self.text).replace("\n", "<br>")
        style = "border-left:.3em solid #b8860b;padding:.4em .8em;color:inherit"
        return f"<div role='note' style='{style}'><strong>{html.escape(self.title)}</strong><br>{body}</div>"


def ladder(spec: Exercise) -> list[Hint]:
    """All rungs: two hints, what each known mistake looks like, and where the solution is."""
    seen = "\n".join(f"I see {m.see}: {m.name}. {m.cause} {m.cure}" for m in spec.mistakes)
    rungs = [Hint(f"{spec.name}, hint {n} of 2", text) for n, text in enumerate(spec.hints, 1)]
    rungs.append(Hint(f"{spec.name}, help: I see …", seen))
    rungs.append(Hint(f"{spec.name}, the solution", f"It stands in solutions/, in the notebook of lab {spec.lab}."))
    return rungs


def hint(function: Answer | str) -> Hint:
    """The next hint for an exercise; each call goes one step further, and the last one stays."""
    spec = find(function) if isinstance(function, str) else function.exercise
    rungs = ladder(spec)
    step = min(_steps.get(spec.name, 0), len(rungs) - 1)
    _steps[spec.name] = step + 1
    return rungs[step]


@dataclass(frozen=True)
class Progress:
    """For every lab: its exercises by name, each "passed", "failed" or "not attempted"."""

    labs: Mapping[str, Mapping[str, str]]

    def __repr__(self) -> str:
        lines = []
        for lab, states in self.labs.items():
            done = sum(s == "passed" for s in states.values())
            marks = "".join({"passed": "■", "failed": "◪"}.get(s, "□") for s in states.values())
            lines.append(f"lab {lab}  {marks}  {done} of {len(states)}")
        total = sum(s == "passed" for states in self.labs.values() for s in states.values())
        count = sum(map(len, self.labs.values()))
        return "\n".join([*lines, f"{total} of {count} exercises passed   ■ passed  ◪ tried  □ not attempted"])

    def _repr_html_(self) -> str:
        rows = []
        for lab, states in self.labs.items():
            cells = "".join(
                f"<span title='{html.escape(f'{name}: {state}', quote=True)}' role='img' "
                f"aria-label='{html.escape(f'{name}: {state}', quote=True)}'>"
                f"{ {'passed': '■', 'failed': '◪'}.get(state, '□') }</span> "
                for name, state in states.items()
            )
            done = sum(s == "passed" for s in states.values())
            rows.append(f"<tr><th scope='row'>lab {lab}</th><td>{cells}</td><td>{done} of {len(states)}</td></tr>")
        caption = "<caption>■ passed, ◪ tried, □ not attempted</caption>"
        return f"<table style='color:inherit'>{caption}{''.join(rows)}</table>"


def progress() -> Progress:
    """What is done so far, from the one record in the folder of the notebooks."""
    done = record.read()
    labs: dict[str, dict[str, str]] = {}
    for name in exercises():
        labs.setdefault(exercises().lab_of(name), {})[name] = done[name]["status"] if name in done else "not attempted"
    return Progress(labs)
