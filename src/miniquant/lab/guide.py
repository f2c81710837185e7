"""Where a student stands: ``hint`` walks an exercise's ladder, one step a call; ``progress`` shows what is done."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.language import translated
from . import record, session
from .catalogue import exercises, find
from .report import marked
from .spec import Exercise


@dataclass(frozen=True)
class Hint:
    """One rung of the ladder."""

    title: str
    text: str

    def __repr__(self) -> str:
        return f"{translated(self.title)}\n  " + translated(self.text).replace("\n", "\n  ")

    def _repr_html_(self) -> str:
        body = marked(translated(self.text)).replace("\n", "<br>")
        style = "border-left:.3em solid #b8860b;padding:.4em .8em;color:inherit"
        return (
            f"<div role='note' style='{style}'><strong>{html.escape(translated(self.title))}</strong><br>{body}</div>"
        )


def ladder(spec: Exercise) -> list[Hint]:
    """All rungs: two hints, the cure for the cause that the last check found, and where the solution is.

    Where no check found a cause, the third rung is a list of what the known mistakes look like.
    """
    rungs = [Hint(f"{spec.name}, hint {n} of 2", text) for n, text in enumerate(spec.hints, 1)]
    last = session.state(spec.name).report
    if last and last.mistake and last.cure:
        rungs.append(Hint(f"{spec.name}, {last.certainty}", f"{last.mistake}: {last.cause}\nWhat to do: {last.cure}"))
    else:
        seen = "\n".join(f"I see {m.see}: {m.name}. {m.cause} {m.cure}" for m in spec.mistakes)
        rungs.append(Hint(f"{spec.name}, help: I see …", seen))
    rungs.append(Hint(f"{spec.name}, the solution", f"It is in solutions/, in the notebook of lab {spec.lab}."))
    return rungs


def next_rung(spec: Exercise) -> str:
    """What the next call of ``hint`` will show, as one line."""
    step = min(session.state(spec.name).step, 3)
    last = session.state(spec.name).report
    third = "what to do about the cause" if last and last.mistake and last.cure else "what the known mistakes look like"
    shows = ("Hint 1", "Hint 2", third, "where the solution is")[step]
    return f"`hint({spec.name})` shows {shows}"


def hint(function: Callable[..., Any] | str) -> Hint:
    """The next hint for an exercise; each call goes one step further, and the last one stays.

    Raises ``MiniquantError`` for a name that no exercise has.
    """
    name = function if isinstance(function, str) else getattr(function, "__name__", str(function))
    spec = getattr(function, "exercise", None) or find(name)
    rungs = ladder(spec)
    state = session.state(spec.name)
    step = min(state.step, len(rungs) - 1)
    state.step = step + 1
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
            lines.append(f"{translated(f'lab {lab}')}  {marks}  {translated(f'{done} of {len(states)}')}")
        total = sum(s == "passed" for states in self.labs.values() for s in states.values())
        count = sum(map(len, self.labs.values()))
        summary = f"{total} of {count} exercises passed   ■ passed  ◪ tried  □ not attempted"
        return "\n".join([*lines, translated(summary)])

    def _repr_html_(self) -> str:
        rows = []
        for lab, states in self.labs.items():
            cells = "".join(
                f"<span title='{html.escape(f'{name}: {translated(state)}', quote=True)}' role='img' "
                f"aria-label='{html.escape(f'{name}: {translated(state)}', quote=True)}'>"
                f"{ {'passed': '■', 'failed': '◪'}.get(state, '□') }</span> "
                for name, state in states.items()
            )
            done = sum(s == "passed" for s in states.values())
            rows.append(
                f"<tr><th scope='row'>{translated(f'lab {lab}')}</th><td>{cells}</td>"
                f"<td>{translated(f'{done} of {len(states)}')}</td></tr>"
            )
        caption = f"<caption>{translated('■ passed, ◪ tried, □ not attempted')}</caption>"
        return f"<table style='color:inherit'>{caption}{''.join(rows)}</table>"


def progress() -> Progress:
    """What is done so far, from the one record in the folder of the notebooks."""
    done = record.read()
    labs: dict[str, dict[str, str]] = {}
    for name in exercises():
        labs.setdefault(exercises().lab_of(name), {})[name] = done[name]["status"] if name in done else "not attempted"
    return Progress(labs)
