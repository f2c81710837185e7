"""The teaching claims, for every exercise of the catalogue."""

from __future__ import annotations

import pytest

from miniquant.lab import exercises
from miniquant.lab.authoring.checks import CLAIMS


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
@pytest.mark.parametrize("name", exercises())
def test_every_exercise_keeps_every_claim(name, claim):
    assert list(claim(exercises()[name])) == []
