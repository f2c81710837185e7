"""A hint names an idea or a tool; a line of the solution in it is found."""

from __future__ import annotations

import pytest

from miniquant.lab import Exercise
from miniquant.lab.authoring.hints import answers


def solution(w, scale, entries):
    """Doc."""
    q = w.round()
    if len(entries) > 3:
        entries.sort()
    for name in entries:
        q += entries[name]["at"] + 2
    return max(q / scale)


def hinted(*hints):
    return Exercise(
        goal="Go.",
        minutes=3,
        difficulty="core",
        reference=solution,
        oracle=solution,
        cases=lambda random: [],
        hints=hints,
        why="it is.",
    )


@pytest.mark.parametrize(
    "code",
    [
        "q = w.round()",
        "q=w.round( )",
        "max(q / scale)",
        "return max(q / scale)",
        "if len(entries) > 3:",
        "len(entries) > 3",
        "entries[name]['at'] + 2",
        'entries[name]["at"]',
        'q += entries[name]["at"] + 2',
    ],
)
def test_a_line_of_the_solution_is_an_answer(code):
    assert answers(hinted("First.", f"Write `{code}` here.")) == [(2, code)]
    assert answers(hinted(f"Write `{code}` here.", "Second.")) == [(1, code)]


@pytest.mark.parametrize(
    "code",
    ["w.round()", "max", "w.round", "q / scale", "entries.sort()", "len(entries)", "name", "not code", "x[::2] + 1"],
)
def test_a_tool_is_no_answer(code):
    assert answers(hinted("First.", f"Look at `{code}` here.")) == []
