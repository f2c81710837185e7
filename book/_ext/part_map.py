"""The directive ``{map} II``: the labs of a part as a list, with arcs from each lab to those that build on it."""

from __future__ import annotations

import html
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from miniquant.lab.authoring.course import SOURCE, Lab, all_labs, read_course

ROOT = Path(__file__).resolve().parents[2]
ROW, DOT, BULGE = 56, 62, 13  # CSS pixels: the height of a row, where the dots stand, what each row adds to an arc
OTHER = ' class="mq-other"'


class PartMap(SphinxDirective):
    """``{map} II`` shows the labs of part II, and before them those of other parts that they build on."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Called by Sphinx."""
        self.env.note_dependency(str(ROOT / SOURCE))
        parts = read_course(ROOT)
        own = next((part.labs for part in parts if part.name == self.arguments[0]), None)
        if own is None:
            raise self.error(f"the course has no part {self.arguments[0]!r}")
        return [nodes.raw("", part_map(own, all_labs(parts)), format="html")]


def part_map(own: tuple[Lab, ...], course: tuple[Lab, ...]) -> str:
    """The labs ``own`` and those of the course that they build on, in order, as HTML."""
    needed = {number for lab in own for number in lab.after}
    shown = [lab for lab in course if lab in own or lab.number in needed]
    place = {lab.number: at for at, lab in enumerate(shown)}
    arcs = "".join(arc(place[before], place[lab.number]) for lab in own for before in lab.after)
    dots = "".join(dot(at, lab in own) for at, lab in enumerate(shown))
    rows = "".join(row(lab, lab in own) for lab in shown)
    height = ROW * len(shown)
    return (
        f'<div class="mq-map"><svg viewBox="0 0 72 {height}" width="72" height="{height}" aria-hidden="true">'
        f"{arcs}{dots}</svg><ol>{rows}</ol></div>\n"
        "<p><small>An arc leads from a lab to one that builds on it. "
        "An empty dot is a lab of another part.</small></p>\n"
    )


def arc(start: int, end: int) -> str:
    """From the row of a lab to that of one that builds on it; the farther, the wider."""
    above, below = (ROW * at + ROW // 2 for at in (start, end))
    x = max(DOT - 8 - BULGE * (end - start), 0)
    return f'<path d="M{DOT - 6} {above}C{x} {above} {x} {below} {DOT - 8} {below}"/>'


def dot(at: int, own: bool) -> str:
    """The dot of a row; that of another part's lab is empty."""
    return f'<circle cx="{DOT}" cy="{ROW * at + ROW // 2}" r="5"{OTHER * (not own)}/>'


def row(lab: Lab, own: bool) -> str:
    """A lab with its time; what it builds on, for those who do not see the arcs."""
    title = html.escape(lab.title[:1].upper() + lab.title[1:])
    after = f'<span class="mq-hidden"> It builds on {" and ".join(f"lab {n}" for n in lab.after)}.</span>'
    return (
        f'<li{OTHER * (not own)}><span><a href="../notebooks/{lab.file.removesuffix(".ipynb")}.html">'
        f"{lab.number} {title}</a> <small>{lab.time.total} min</small>{after * bool(own and lab.after)}</span></li>"
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("map", PartMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
