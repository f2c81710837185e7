"""Three directives: ``{course}``, the table of the labs or of one part; ``{solved}``, the list of the solved labs; and
``{taught}``, what was taught where.
"""

from __future__ import annotations

from pathlib import Path

import spanish
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from miniquant.lab.authoring.api import table, taught
from miniquant.lab.authoring.course import SOURCE, all_labs, read_course, rows

ROOT = Path(__file__).resolve().parents[2]


class CourseTable(SphinxDirective):
    """``{course}`` shows all labs, ``{course} III`` those of part III."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Called by Sphinx."""
        self.env.note_dependency(str(ROOT / SOURCE))
        for path in sorted((ROOT / "solutions").glob("[0-9]*.ipynb")):
            self.env.note_dependency(str(path))
        parts = read_course(ROOT)
        if self.arguments:
            parts = [part for part in parts if part.name == self.arguments[0]]
            if not parts:
                raise self.error(f"the course has no part {self.arguments[0]!r}")
        return parsed(self, rows(all_labs(parts), "../notebooks"))


class Solved(SphinxDirective):
    """``{solved}`` lists the solved labs."""

    def run(self) -> list[nodes.Node]:
        """Called by Sphinx."""
        self.env.note_dependency(str(ROOT / SOURCE))
        labs = all_labs(read_course(ROOT))
        return parsed(self, [f"- [{lab.number} {lab.title}](../solutions/{lab.file})" for lab in labs])


class Taught(SphinxDirective):
    """``{taught}`` lists for each exercise the API of its solution and the cell that introduced it."""

    def run(self) -> list[nodes.Node]:
        """Called by Sphinx."""
        for folder in ("notebooks/[0-9]*.ipynb", "src/miniquant/lessons/*/*.py"):
            for path in sorted(ROOT.glob(folder)):
                self.env.note_dependency(str(path))
        lines = ["| lab | exercise | what its solution uses, and where it was introduced |", "| --- | --- | --- |"]
        for number, name, found in table(taught(ROOT)):
            uses = ", ".join(_code(use) for use in found.split(" · "))
            lines.append(f"| {number} | `{name}` | {uses} |")
        return parsed(self, lines)


def _code(use: str) -> str:
    name, space, where = use.partition(" (") if use.endswith(")") else use.rpartition(" ")
    return f"`{name}`{space}{where}".replace("|", r"\|")


def parsed(directive: SphinxDirective, lines: list[str]) -> list[nodes.Node]:
    """The nodes of some lines of Markdown, at the place of a directive."""
    if directive.config.language == spanish.NAME:
        lines = [spanish.linked(line, directive.env.docname) for line in lines]
    node = nodes.Element()
    directive.state.nested_parse(StringList(lines, source=SOURCE), directive.content_offset, node)
    return node.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("course", CourseTable)
    app.add_directive("solved", Solved)
    app.add_directive("taught", Taught)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
