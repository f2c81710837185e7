"""How a check speaks: the same report as plain text and as HTML that follows the notebook's theme."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.language import translated

_TITLES = {"passed": "✓ passed", "not attempted": "○ not attempted yet", "failed": "✗ not right yet"}
_COLOURS = {"passed": "#2e8b57", "not attempted": "#808080", "failed": "#c8553d"}
CASE, EXPECTED, GOT = "smallest case", "expected", "got"
OF_ITS_KIND = "smallest case of this kind"  # of those of which the first sentence is true
_VALUES = (CASE, OF_ITS_KIND, EXPECTED, GOT)
LIKELY = "as far as tried, same results as the known mistake"
SAME = "as far as tried, same results as"
SEEN = "what your results show"


@dataclass(frozen=True)
class Shown:
    """A case and both results as short text.

    ``cut`` says that a text is shorter than what it shows; ``of_its_kind`` that there is a smaller wrong case, which
    fails in another way, or must be refused.
    """

    case: str = ""
    expected: str = ""
    got: str = ""
    cut: bool = False
    of_its_kind: bool = False


@dataclass(frozen=True, eq=False)
class Report:
    """What a check found. Empty parts are not shown.

    ``case`` has the arguments of the failed call by name, ``expected`` and ``got`` the two results, whole: a call that
    raised has its exception there. ``shown`` has the same as short texts. ``mistake`` is the title of what was
    recognized, ``cause`` its sentence, and ``certainty`` how sure that is: the same results, or something that the
    results themselves show. ``also`` has further sentences. ``perhaps`` is the title of a known mistake that is not
    sure; it is not shown. ``cure`` is not shown either; it is the last rung before the solution of ``hint``.
    """

    status: str
    exercise: str
    what: str = ""
    case: Mapping[str, Any] = field(default_factory=dict)
    expected: Any = None
    got: Any = None
    shown: Shown = Shown()
    certainty: str = LIKELY
    mistake: str = ""
    cause: str = ""
    cure: str = ""
    also: str = ""
    perhaps: str = ""
    hint: str = ""
    next: str = ""
    score: str = ""
    why: str = ""
    note: str = ""
    trace: str = ""

    @property
    def passed(self) -> bool:
        """Whether every case was right."""
        return self.status == "passed"

    def lines(self) -> list[tuple[str, str]]:
        """The parts that are not empty: (label, text)."""
        cause = f"{self.mistake}: {self.cause}" if self.mistake and self.cause else self.mistake
        whole = f"this is cut; write `r = check({self.exercise})`: `r.case`, `r.expected` and `r.got` are whole"
        parts = [
            (OF_ITS_KIND if self.shown.of_its_kind else CASE, self.shown.case),
            (EXPECTED, self.shown.expected),
            (GOT, self.shown.got),
            ("to see all", whole if self.shown.cut else ""),
            (self.certainty, cause),
            ("also", self.also),
            ("note", self.note),
            ("your score", self.score),
            ("why it matters", self.why),
            ("goal" if self.status == "not attempted" else "hint 1", self.hint),
            ("next", self.next),
            ("traceback", self.trace),
        ]
        return [(label, text) for label, text in parts if text]

    def __repr__(self) -> str:
        rows = [f"{translated(_TITLES[self.status])} · {self.exercise}: {translated(self.what)}"]
        for label, text in self.lines():
            first, *rest = _spoken(label, text).split("\n")
            rows += [f"  {translated(label)}: {first}", *(f"    {line}" for line in rest)]
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        colour = _COLOURS[self.status]
        status, what = html.escape(translated(_TITLES[self.status])), marked(translated(self.what))
        title = f"<strong>{status} · {html.escape(self.exercise)}</strong>: {what}"
        rows = "".join(
            f"<div style='margin-top:.25em'><span style='opacity:.75'>{translated(label)}</span>: "
            f"{_value(label, _spoken(label, text))}</div>"
            for label, text in self.lines()
        )
        style = f"border-left:.3em solid {colour};padding:.4em .8em;color:inherit;overflow-x:auto"
        return f"<div role='status' class='mq-report' style='{style}'><div>{title}</div>{rows}</div>"


def _spoken(label: str, text: str) -> str:
    """The text of a part in the chosen language; values and tracebacks are what they are."""
    return text if label in (*_VALUES, "traceback") else translated(text)


def _value(label: str, text: str) -> str:
    safe = html.escape(text)
    if label == "traceback":
        return f"<pre style='margin:.2em 0;background:transparent;color:inherit'>{safe}</pre>"
    if label in _VALUES:
        return f"<code style='background:transparent;color:inherit'>{safe}</code>"
    return marked(text)


def marked(text: str) -> str:
    """Text as HTML, with what stands between backticks as code.

    >>> marked("shift with `<<`")
    'shift with <code>&lt;&lt;</code>'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
