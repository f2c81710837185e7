"""The course on one page: labs, site and README tell the same times, and a lab takes an hour at most."""

from __future__ import annotations

import re

import nbformat
import pytest
from course_parts import PARTS
from places import ROOT

from miniquant.core.errors import MiniquantError
from miniquant.lab.authoring.course import BEGIN, END, SOURCE, _earlier, all_labs, rows, with_table
from miniquant.lab.authoring.reading import LIMIT

LONGER: dict[str, int] = {}  # labs that are not split yet; this list may only shrink

LABS = all_labs(PARTS)
every_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)


@every_lab
def test_no_lab_takes_more_than_an_hour(lab):
    assert lab.number >= "14" or lab.number not in LONGER
    assert lab.time.total <= LONGER.get(lab.number, LIMIT), lab.time.line


def test_a_lab_that_takes_an_hour_by_now_is_no_exception():
    assert [lab.number for lab in LABS if lab.number in LONGER and lab.time.total <= LIMIT] == []


@every_lab
@pytest.mark.parametrize("folder", ["solutions", "notebooks"])
def test_a_lab_tells_its_time_in_its_first_cell_and_nowhere_else(lab, folder):
    first, *others = (
        cell.source for cell in nbformat.read(ROOT / folder / lab.file, 4).cells if cell.cell_type == "markdown"
    )
    assert first.count(lab.time.line) == first.count("**Time.**") == 1
    assert not [source for source in others if "**Time.**" in source]


def test_the_readme_has_the_table_of_the_course():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert with_table(readme, PARTS) == readme, "run tools/course.py"
    for lab in LABS:
        assert f"| {lab.time.total} min, {lab.time.exercises} exercise" in readme


def test_the_site_shows_the_table_as_a_whole_and_part_by_part():
    assert "```{course}\n" in (ROOT / "book/index.md").read_text("utf-8")
    for part in PARTS:
        if part.page:
            assert f"```{{course}} {part.name}\n" in (ROOT / "book" / part.page).read_text("utf-8")


def test_no_other_page_tells_the_time_of_a_lab():
    said = re.compile(r"half an hour|three quarters of an hour|\b\d+ (to \d+ )?minutes\b")
    for page in [ROOT / "README.md", *(ROOT / "book").glob("*.md")]:
        if page.name not in ("speed.md", "model-card.md", "better-bits.md"):  # how long a program takes
            assert not said.findall(page.read_text("utf-8")), page.name


def test_every_line_of_the_table_has_a_notebook_or_waits_for_one():
    table = (ROOT / SOURCE).read_text("utf-8")
    files = {path.name for path in (ROOT / "solutions").glob("[0-9]*-*.ipynb") if path.stem[2] == "-"}
    assert {lab.file for lab in LABS} == {name for name in files if not name.startswith("03-gguf-export")}
    assert len(rows(LABS, "notebooks")) == len(LABS) + 2
    assert table.count("\n[lab.") >= len(LABS)


@pytest.mark.parametrize("readme", ["", BEGIN, END])
def test_a_readme_without_the_marks_is_refused(readme):
    with pytest.raises(MiniquantError, match="lacks"):
        with_table(readme, PARTS)


def test_a_lab_builds_only_on_earlier_ones_and_says_so():
    for lab in LABS:
        assert all(number < lab.number for number in lab.after), lab.number
    needs = {lab.number: lab.needs for lab in LABS}
    assert needs["00"] == "numpy alone"
    assert needs["07"] == "lab 06, PyTorch"
    assert needs["13"] == "labs 09, 10, 11 and 12, PyTorch"


def test_a_part_needs_what_its_labs_need_of_other_parts():
    second = PARTS[2]
    assert second.needs == "labs 01 and 02, PyTorch"
    assert PARTS[0].needs == "numpy alone"
    assert second.minutes == sum(lab.time.total for lab in second.labs)
    assert all(part.leave for part in PARTS)


def test_a_lab_that_comes_after_a_later_one_is_refused():
    assert _earlier("int4", "int8") == "06"
    with pytest.raises(MiniquantError, match=r"lab\.int8\] comes after 'int4', which is no earlier lab"):
        _earlier("int8", "int4")


@every_lab
def test_the_title_of_a_lab_begins_with_a_small_letter_or_a_name(lab):
    assert lab.title[0].islower() or lab.title.startswith(("AWQ", "GPTQ", "SmoothQuant", "K-quants"))
