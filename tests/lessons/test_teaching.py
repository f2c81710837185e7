"""The course teaches before it asks, and its hints are not its answers."""

from __future__ import annotations

import pytest
from places import ROOT

from miniquant.lab import exercises
from miniquant.lab.authoring.api import missing
from miniquant.lab.authoring.hints import answers


@pytest.fixture(scope="module")
def untaught():
    found = {}
    for use in missing(ROOT):
        found.setdefault((use.lab, use.exercise), set()).add(use.use)
    return found


def test_every_lab_introduces_what_a_solution_uses_before_its_stub(untaught):
    assert untaught == {}


def test_no_hint_is_an_answer():
    found = [f"{name}, hint {number}: {code}" for name in exercises() for number, code in answers(exercises()[name])]
    assert found == []
