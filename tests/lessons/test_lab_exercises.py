"""The teaching claims, for every exercise of the catalogue."""

from __future__ import annotations

import pytest
from thorough import tried

from miniquant.lab import exercises
from miniquant.lab.authoring.checks import CLAIMS, two_mistakes_at_once_are_refused

NAMES = exercises()
TURN = tried(3, 1)  # two mistakes at once take a third of the time: so many exercises take turns with them


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_every_exercise_keeps_every_claim(number):
    name = list(NAMES)[number]
    claims = [claim for claim in CLAIMS if claim is not two_mistakes_at_once_are_refused or not number % TURN]
    found = {claim.__name__: list(claim(exercises()[name])) for claim in claims}
    assert found == {claim.__name__: [] for claim in claims}
