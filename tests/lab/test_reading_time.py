"""The time of a lab: what counts as visible, and how it is rounded."""

from __future__ import annotations

import pytest

from miniquant.lab.authoring.reading import RULES, Time, time_of, visible, with_time, words


def cell(source, kind="markdown", **mark):
    return {"cell_type": kind, "source": source, "metadata": {"miniquant": mark} if mark else {}}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("# Lab 06: one byte for a weight", 7),
        ("You see it\n\n<details>\n<summary>Hint</summary>\n\nlong text\n\n</details>\n\nand go on.", 6),
        ("[four words of text](a/very-long/address.md) ![a picture](x.png)", 6),
        ("**Time.** 99 minutes: 9 of reading, 90 for nine exercises.", 0),
        ("| a | b |\n| --- | --- |\n| one | two |", 4),
        ("<div align='left' class='mq'>one</div> w < 3 and 4 > x", 6),
    ],
)
def test_only_visible_words_count(source, count):
    assert words([cell(source)]) == count, visible(source)


def test_a_stub_s_docstring_counts_and_its_code_and_its_help_do_not():
    stub = 'import numpy\n@exercise("f")\ndef f(x):\n    """Double every value."""\n    return x + x + x'
    cells = [
        cell(stub, "code", exercise="f", part="stub"),
        cell("check(f)", "code", exercise="f", part="check"),
        cell("Hints and hints", exercise="f", part="help"),
        cell("print(1 + 1)", "code"),
    ]
    assert words(cells) == 3
    assert time_of(cells, {"f": 4, "g": 50}) == Time(words=3, exercises=1, practice=4)


@pytest.mark.parametrize(("count", "reading"), [(0, 0), (1, 1), (180, 1), (181, 2), (1620, 9)])
def test_reading_is_rounded_up_to_a_minute(count, reading):
    assert Time(count, 6, 43).line == f"**Time.** {43 + reading} minutes: {reading} of reading, 43 for six exercises."


def test_writing_the_time_twice_changes_nothing_the_second_time():
    once = with_time("# Lab 01\n\nText.", Time(180, 2, 9))
    assert once == f"# Lab 01\n\nText.\n\n**Time.** 10 minutes: 1 of reading, 9 for two exercises.\n{RULES}"
    assert with_time(once, Time(180, 2, 9)) == once


def test_the_rules_of_a_check_are_said_once_in_the_first_cell():
    lab = "# Lab 00\n\nRules are in [What a check accepts](../book/words.md#what-a-check-accepts)."
    assert with_time(lab, Time(180, 2, 9)).count("words.md#what-a-check-accepts") == 1
    assert with_time("# Lab 01", Time(180, 2, 9)).count("words.md#what-a-check-accepts") == 1
    assert "arguments" not in with_time("# No exercise", Time(180, 0, 0))
