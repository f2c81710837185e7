"""One word for one thing, in everything that a student reads."""

from __future__ import annotations

import re

import pytest
from places import ROOT
from teaching_text import everything, lab_number

from miniquant.lab.authoring.words import WORDS, replaced


@pytest.fixture(scope="module")
def found():
    return [
        (lab_number(text), f"{text.place}: {around!r}; say: {plain}")
        for text in everything()
        for around, plain in replaced(text.text, text.subject)
    ]


def test_pages_messages_and_docstrings_use_the_words_of_the_course(found):
    assert [said for lab, said in found if lab < 0] == []


def test_the_labs_use_the_words_of_the_course(found):
    assert [said for lab, said in found if lab >= 0] == []


def test_the_page_of_words_shows_what_is_replaced():
    page = (ROOT / "book/words.md").read_text("utf-8")
    not_used = " | ".join(row.split("|")[3] for row in page.splitlines() if row.count("|") == 4)
    for phrase in (
        "to the bit",
        "behind",
        "in front of",
        "mend",
        "ruler",
        "minimums",
        "stands twice",
        "luck in the data",
    ):
        assert phrase in not_used


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.plain)
def test_no_pattern_of_a_replaced_word_matches_the_plain_one(word):
    assert not re.search(word.replaced, word.plain)


@pytest.mark.parametrize(
    ("text", "subject", "plain"),
    [
        ("No key may stand twice.", "", "is a duplicate, is there twice"),
        ("equal to the bit", "", "bit for bit"),
        ("Hold the offsets and the\nsizes against the file.", "", "check against"),
        ("bytes behind the end", "", "after"),
        ("it leaves no file behind", "", None),
        ("fifteen marks", "int4", "level"),
        ("fifteen marks", "pickle", None),
        ("the longest weight", "int8", "large, largest, wide"),
    ],
)
def test_a_replaced_word_is_found_where_it_means_the_thing(text, subject, plain):
    assert [said for _, said in replaced(text, subject)] == ([plain] if plain else [])
