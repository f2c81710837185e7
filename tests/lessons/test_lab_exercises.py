"""The teaching claims, for every exercise of the catalogue."""

from __future__ import annotations

import pytest
from thorough import tried

from miniquant.lab import exercises
from miniquant.lab.authoring.checks import CLAIMS, two_mistakes_at_once_have_a_report

pytestmark = pytest.mark.usefixtures("few_pairs")

NAMES = exercises()
TURN = tried(17, 1)  # whole reports on two mistakes at once take half of the time: exercises take turns with them


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_every_exercise_keeps_every_claim(number):
    name = list(NAMES)[number]
    claims = [claim for claim in CLAIMS if claim is not two_mistakes_at_once_have_a_report or not number % TURN]
    found = {claim.__name__: list(claim(exercises()[name])) for claim in claims}
    assert found == {claim.__name__: [] for claim in claims}
