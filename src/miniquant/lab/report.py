"""How a check speaks: the same report as plain text and as HTML that follows the notebook's theme."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

_TITLES = {"passed": "✓ passed", "not attempted": "○ not attempted yet", "failed": "✗ not right yet"}
_COLOURS = {"passed": "#2e8b57", "not attempted": "#808080", "failed": "#c8553d"}


@dataclass(frozen=True)
class Report:
    """What a check found, in the order in which it is read; empty parts are left out."""

    status: str
    exercise: str
    what: str = ""
    case: str = ""
    expected: str = ""
    got: str = ""
    mistake: str = ""
    cause: str = ""
    cure: str = ""
    hint: str = ""
    why: str = ""
    note: str = ""
    trace: str = ""

    @property
    def passed(self) -> bool:
        """Whether every case was right."""
        return self.status == "passed"

    def lines(self) -> list[tuple[str, str]]:
        """The parts that are not empty: (label, text)."""
        cause = f"{self.mistake}: {self.cause}" if self.mistake else ""
        label = "goal" if self.status == "not attempted" else "next hint"
        parts = [
            ("smallest case", self.case),
            ("expected", self.expected),
            ("got", self.got),
            ("likely cause", cause),
            ("what to do", self.cure),
            ("note", self.note),
            ("why it matters", self.why),
            (label, self.hint),
            ("traceback", self.trace),
        ]
        return [(label, text) for label, text in parts if text]

    def __repr__(self) -> str:
        rows = [f"{_TITLES[self.status]} · {self.exercise}: {self.what}"]
        for label, text in self.lines():
            first, *rest = text.split("\n")
            rows += [f"  {label}: {first}", *(f"    {line}" for line in rest)]
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        colour = _COLOURS[self.status]
        title = f"<strong>{_TITLES[self.status]} · {html.escape(self.exercise)}</strong>: {marked(self.what)}"
        rows = "".join(
            f"<div style='margin-top:.25em'><span style='opacity:.75'>{label}</span>: {_value(label, text)}</div>"
            for label, text in self.lines()
        )
        style = f"border-left:.3em solid {colour};padding:.4em .8em;color:inherit;overflow-x:auto"
        return f"<div role='status' class='mq-report' style='{style}'><div>{title}</div>{rows}</div>"


def _value(label: str, text: str) -> str:
    safe = html.escape(text)
    if label == "traceback":
        return f"<pre style='margin:.2em 0;background:transparent;color:inherit'>{safe}</pre>"
    if label in ("smallest case", "expected", "got"):
        return f"<code style='background:transparent;color:inherit'>{safe}</code>"
    return marked(text)


def marked(text: str) -> str:
    """Text as HTML, with what stands between backticks as code.

    >>> marked("shift with `<<`")
    'shift with <code>&lt;&lt;</code>'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
