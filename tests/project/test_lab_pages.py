"""What the site adds to a page of the book: aligned numbers, the bar of a lab, code at the end."""

from __future__ import annotations

import numpy as np
import pytest
from course_parts import PARTS
from docutils import nodes
from docutils.core import publish_doctree
from lab_pages import align_numbers, captions, card, code_at_end, copied, describe, lab_bar, part_of, smaller
from PIL import Image
from places import ROOT

FOLDERS = ("notebooks", "solutions")
TABLE = """
==== ======= ====
name size    note
==== ======= ====
a    1,024 B 1
b    −0.5 %  two
==== ======= ====
"""


def test_a_column_of_numbers_is_aligned_and_no_other():
    tree = publish_doctree(TABLE)
    align_numbers(tree)
    marked = [entry.astext() for entry in tree.findall(nodes.entry) if "mq-number" in entry["classes"]]
    assert marked == ["size", "1,024 B", "−0.5 %"]


def test_the_bar_of_a_lab_has_all_that_a_student_wants_first():
    lab = PARTS[2].labs[1]
    bar = lab_bar(lab)
    assert "inspector.html" not in bar and "inspector.html" in lab_bar(lab, bytes_shown=True)
    for part in (
        f"{lab.time.total} min",
        f"{lab.time.exercises} exercises",
        "needs lab 06, PyTorch",
        'href="07-int4.ipynb" download',
        "make lab LAB=07",
        'href="../solutions/07-int4.html"',
    ):
        assert part in bar


def test_a_card_tells_time_needs_and_what_one_leaves_with():
    text = card(PARTS[2])
    assert 'href="part-2-quantization.html">Part II: Quantization' in text
    assert PARTS[2].leave in text
    assert "2 labs" in text
    assert "1 h" in text


def test_every_lab_and_every_page_of_a_part_has_the_colour_of_its_part():
    for part in PARTS:
        if part.page:
            files = [f"{folder}/{lab.file.removesuffix('.ipynb')}" for lab in part.labs for folder in FOLDERS]
            assert {part_of(page) for page in [*files, f"book/{part.page.removesuffix('.md')}"]} == {part.name}
            assert f"- caption: {part.title}\n" in (ROOT / "book" / "_toc.yml").read_text("utf-8")
            assert captions()[part.title] == part.name
            assert f'data-part="{part.name}"' in card(part)
    styles = (ROOT / "book" / "_static" / "site.css").read_text("utf-8")
    for theme in ("\n", '\nhtml[data-theme="dark"] '):
        colours = [
            line.partition("{")[2] for line in styles.splitlines() if f"\n{line}".startswith(f"{theme}[data-part=")
        ]
        assert len(set(colours)) == len(colours) == len(captions())
    assert part_of("book/glossary") == part_of("notebooks/00-five-minutes") == ""


def test_a_line_to_copy_is_escaped():
    assert copied("a && b").count("a &amp;&amp; b") == 2


def test_the_code_of_a_picture_stands_folded_at_the_end():
    tree = nodes.document(None, None)
    section = nodes.section()
    code = nodes.container("", classes=["cell_input"])
    output = nodes.container("", classes=["cell_output"])
    cell = nodes.container("", code, output, classes=["tag_code-at-end"])
    section += [cell, nodes.paragraph("", "text")]
    tree += section
    code_at_end(tree)
    assert cell.children == [output]
    assert section.children[-2] is code
    assert "<details" in section.children[-3].astext()


def test_a_picture_of_few_colours_gets_smaller_and_a_transparent_one_stays(tmp_path):
    path = tmp_path / "a.png"
    noise = np.random.default_rng(0).integers(0, 12, (120, 120, 1)).repeat(3, 2).astype(np.uint8) * 20
    for alpha, shrinks in ((255, True), (128, False)):
        Image.fromarray(np.dstack([noise, np.full((120, 120), alpha, np.uint8)])).save(path, compress_level=1)
        before = path.stat().st_size
        smaller(path)
        assert (path.stat().st_size < 0.8 * before) == shrinks
    with Image.open(path) as kept:
        assert np.array_equal(np.asarray(kept)[..., :3], noise)


@pytest.mark.parametrize(
    ("page", "about"),
    [("_modules/miniquant/a", "The source code of T, a part of miniquant."), ("other", "T: a page of miniquant")],
)
def test_a_page_without_a_paragraph_has_a_description(page, about):
    assert describe(page, "T", None).startswith(about)


def test_a_description_is_the_first_paragraph_that_says_something():
    tree = publish_doctree("Short.\n\nWhat you build. Functions that turn the weights of a model into integers.")
    assert describe("a", "T", tree) == "Functions that turn the weights of a model into integers."
