"""Two directives for the pages of instructors: ``{plan} 6``, a plan of so many weeks, and ``{key}``, the answer key."""

from __future__ import annotations

from pathlib import Path

from course_table import parsed
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from miniquant.lab import exercises
from miniquant.lab.authoring import weeks
from miniquant.lab.authoring.answer_key import key_of_lab
from miniquant.lab.authoring.course import SOURCE, all_labs, read_course

ROOT = Path(__file__).resolve().parents[2]


class PlanTable(SphinxDirective):
    """``{plan} 12`` shows the plan of 12 weeks, and below it the time of all its labs."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Called by Sphinx."""
        _depends(self, weeks.SOURCE)
        plans = weeks.read_plans(ROOT)
        plan = plans.get(int(self.arguments[0]))
        if plan is None:
            raise self.error(f"{weeks.SOURCE} has no plan of {self.arguments[0]} weeks")
        total = f"All labs of this plan together take {weeks.hours(plan.minutes)}."
        return parsed(self, [*weeks.rows(plan, "../notebooks"), "", total])


class AnswerKey(SphinxDirective):
    """``{key}`` shows the answer key, a fold for each lab."""

    def run(self) -> list[nodes.Node]:
        """Called by Sphinx."""
        _depends(self, "src/miniquant/lab/authoring/answer_key.py")
        for path in sorted(ROOT.glob("src/miniquant/lessons/*/*.py")):
            self.env.note_dependency(str(path))
        lines: list[str] = []
        for lab in all_labs(read_course(ROOT)):
            lines += [f":::{{dropdown}} {lab.number} {lab.title[:1].upper()}{lab.title[1:]}", ""]
            lines += [*key_of_lab(lab, exercises().of_lab(lab.subject), ".."), ":::", ""]
        return parsed(self, lines)


def _depends(directive: SphinxDirective, source: str) -> None:
    for path in (ROOT / SOURCE, ROOT / source, *sorted((ROOT / "solutions").glob("[0-9]*.ipynb"))):
        directive.env.note_dependency(str(path))


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("plan", PlanTable)
    app.add_directive("key", AnswerKey)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
