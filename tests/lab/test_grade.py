"""Grading a folder of submissions, each in a process of its own."""

from __future__ import annotations

import csv
import json

import nbformat
import pytest
from click.testing import CliRunner

from miniquant.cli import main
from miniquant.core.errors import MiniquantError
from miniquant.lab import exercises
from miniquant.lab.grading.grade import submissions

IMPORTS = "import numpy as np\nfrom miniquant.lab import exercise, check"
RIGHT = """
@exercise("pack_int4")
def pack_int4(values):
    nibbles = values.astype(np.uint8) & 15
    return nibbles[..., 0::2] | (nibbles[..., 1::2] << 4)
"""
SWAPPED = RIGHT.replace(
    "nibbles[..., 0::2] | (nibbles[..., 1::2] << 4)", "nibbles[..., 1::2] | (nibbles[..., 0::2] << 4)"
)
CLASS = {
    "right/06-writer.ipynb": [IMPORTS, RIGHT, "check(pack_int4)"],
    "undecorated.ipynb": [IMPORTS, RIGHT.replace('@exercise("pack_int4")\n', ""), "check(pack_int4) is not run"],
    "swapped/deep/06-writer.ipynb": [IMPORTS, SWAPPED],
    "stub/06-writer.ipynb": [IMPORTS, '@exercise("pack_int4")\ndef pack_int4(values):\n    raise NotImplementedError'],
    "crash/06-writer.ipynb": [
        IMPORTS,
        RIGHT.replace("def pack_int4", "def unpack_int4").replace("pack_int4", "pack_int4"),
        "import os\ndef pack_int4(values):\n    os._exit(7)",
    ],
    "network/06-writer.ipynb": [
        IMPORTS,
        "import socket\ndef pack_int4(values):\n    socket.create_connection(('127.0.0.1', 9), 1)\n",
    ],
    "writes/06-writer.ipynb": [
        IMPORTS,
        "def pack_int4(values):\n    open(TARGET, 'w').write('x')\n",
    ],
    "memory/06-writer.ipynb": [IMPORTS, "def pack_int4(values):\n    return bytearray(1 << 44)\n"],
    "broken/06-writer.ipynb": None,
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    for name, cells in CLASS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if cells is None:
            path.write_text("this is not a notebook")
            continue
        cells = [c.replace("TARGET", repr(str(folder / "stolen"))) for c in cells]
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells]), path)
    result = CliRunner().invoke(main, ["grade", str(folder), "--out", str(folder / "grades")])
    assert result.exit_code == 0, result.output
    with open(folder / "grades.csv", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    details = {row["student"]: row for row in json.loads((folder / "grades.json").read_text())}
    return folder, rows, details


@pytest.mark.parametrize(
    ("student", "status"),
    [
        ("right", "passed"),
        ("undecorated", "passed"),
        ("swapped", "failed"),
        ("stub", "not attempted"),
        ("crash", "crashed"),
        ("network", "failed"),
        ("writes", "failed"),
        ("memory", "failed"),
        ("broken", "missing"),
    ],
)
def test_every_kind_of_submission_has_its_own_status(graded, student, status):
    _, rows, _ = graded
    assert rows[student]["pack_int4"] == status


def test_there_is_a_row_for_every_student_and_a_column_for_every_exercise(graded):
    _, rows, details = graded
    assert len(rows) == len(details) == len(CLASS)
    for row in rows.values():
        assert set(exercises()) <= set(row)


def test_a_diagnosis_is_kept_in_the_json(graded):
    assert graded[2]["swapped"]["exercises"]["pack_int4"]["mistake"] == "nibbles swapped"


def test_a_crash_costs_one_exercise_and_no_other(graded):
    answers = graded[2]["crash"]["exercises"]
    assert answers["pack_int4"]["status"] == "crashed"


def test_the_walls_hold(graded):
    folder, _, details = graded
    assert not (folder / "stolen").exists()
    assert "PermissionError" in str(details["network"]) or "raised an error" in str(details["network"])
    assert "raised an error" in details["memory"]["exercises"]["pack_int4"]["what"]


def test_a_notebook_that_cannot_be_read_is_a_problem_of_its_own_row(graded):
    assert "06-writer.ipynb" in graded[1]["broken"]["problems"]


def test_an_endless_notebook_times_out(tmp_path):
    loop = """
def pack_int4(values):
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue
"""
    path = tmp_path / "slow.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(loop)]), path)
    result = CliRunner().invoke(main, ["grade", str(tmp_path), "--out", str(tmp_path / "g"), "--seconds", "12"])
    assert "timed out" in result.output


def test_an_empty_folder_is_a_clear_error(tmp_path):
    with pytest.raises(MiniquantError, match="no notebook"):
        submissions(tmp_path)
