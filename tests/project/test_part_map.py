"""The map of a part: every lab of it, what it builds on, and an arc for each of these."""

from __future__ import annotations

import re

from course_parts import PARTS
from part_map import part_map

from miniquant.lab.authoring.course import all_labs


def test_a_part_shows_its_labs_in_order_after_those_that_they_build_on():
    parts = PARTS
    course = all_labs(parts)
    for part in parts:
        text = part_map(part.labs, course)
        shown = re.findall(r'\.html">(\d\d) ', text)
        needed = {number for lab in part.labs for number in lab.after}
        assert shown == sorted(needed | {lab.number for lab in part.labs})
        assert text.count("<path") == sum(len(lab.after) for lab in part.labs)
        assert text.count("<circle") == len(shown)
        assert text.count("<li class=") == len(needed - {lab.number for lab in part.labs})


def test_what_a_lab_builds_on_is_said_in_words_too():
    parts = {part.name: part for part in PARTS}
    text = part_map(parts["V"].labs, all_labs(tuple(parts.values())))
    assert "It builds on lab 07 and lab 15." in text
