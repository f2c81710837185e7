"""The labs show figures, not booleans: a student sees by how much something holds."""

from __future__ import annotations

import json
import re

import pytest
from places import ROOT

BARE = re.compile(r"(^|[\s:=,(\[])(?<!\| )(True|False)\W*$")  # not a column of a table
ALLOWED = 5  # in all student labs together, each because its question is yes or no


def bare(output: str) -> list[str]:
    """The lines of an output that end with a boolean."""
    return [line for line in output.split("\n") if BARE.search(line)]


@pytest.fixture(scope="module")
def found():
    lines = []
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
            for output in cell.get("outputs", []):
                text = "".join(output.get("text") or output.get("data", {}).get("text/plain", ""))
                lines += [f"{path.name}[{number}]: {line.strip()}" for line in bare(text)]
    return lines


def test_all_labs_together_show_at_most_five_booleans(found):
    assert len(found) <= ALLOWED, "\n".join(found)


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ("True", 1),
        ("equal: True\nthe same bits: False.", 2),
        ("[True, False]", 1),
        ("largest difference 0.0, limit 1e-06", 0),
        ("True for 18 of 18 matrices", 0),
        ("Untrue", 0),
        ("NEWFALSE | 0 | False", 0),
    ],
)
def test_a_line_that_ends_with_a_boolean_is_bare(output, count):
    assert len(bare(output)) == count
