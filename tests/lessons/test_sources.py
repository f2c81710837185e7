"""The assignment and its blocks are introduced before they are named; what others got wrong is in the errata."""

from __future__ import annotations

import re

import pytest
from teaching_text import Text, lab_number, of_lessons, of_notebooks

ASSIGNMENT = re.compile(r"\bthe assignment\b|\bassignment's\b|\bBlocks? [A-F]\b|\bthe document('s)?\b", re.I)
ERRORS = re.compile(
    r"\berrata\b|\bmisprint|\bslips\b|\b(essay|specification|document|article)\b[^.:]{0,60}\b(wrong|slips?|confuse\w*|mistaken)\b"
)
INTRODUCED = "08"  # the lab that introduces the assignment, in one of its first cells


@pytest.fixture(scope="module")
def labs():
    return [text for text in (*of_notebooks(), *of_lessons()) if lab_number(text) < 14]


def said(pattern: re.Pattern[str], texts: list[Text]) -> list[str]:
    found = [(text, match) for text in texts for match in pattern.finditer(" ".join(text.text.split()))]
    return [f"{text.place}: {match[0]!r}" for text, match in found]


def test_labs_00_to_07_do_not_name_the_assignment(labs):
    assert said(ASSIGNMENT, [text for text in labs if text.lab < INTRODUCED]) == []


def test_labs_00_to_07_leave_the_errors_of_others_to_the_errata(labs):
    assert said(ERRORS, [text for text in labs if text.lab < INTRODUCED]) == []


def test_lab_08_introduces_the_assignment_and_its_blocks_at_its_beginning(labs):
    cells = [text for text in labs if re.match(rf"{INTRODUCED}-.*\]$", text.place) and text.text.strip()]
    places = [place for place, text in enumerate(cells) if re.search(r"^## The assignment$", text.text, re.M)]
    assert places and places[0] <= 3
    introduction = cells[places[0]].text
    assert all(re.search(rf"\b{block}\b", introduction) for block in "ABCDE")
    assert said(re.compile(r"\bBlock [A-F]\b"), cells[: places[0]]) == []


@pytest.mark.parametrize("text", ["The essay's formula is wrong.", "the document confuses them", "see the errata"])
def test_a_remark_on_somebody_s_error_is_recognised(text):
    assert said(ERRORS, [Text("here", text)])
